"""How the engine reads files: by threads, or by io_uring where the kernel has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import prismaio
import pytest

# Has the kernel refuse io_uring_setup to this process and its children, as containers do.
REFUSE_IO_URING = """
import ctypes, errno, struct
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
rules = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, 425), (RETURN, 0, 0, 0x00050000 | errno.EPERM),
         (RETURN, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
"""
READ_ALL = """
import sys, prismaio
from pathlib import Path
log, *paths = sys.argv[1:]
with prismaio.connect(memory="16MiB", source="io_uring", log=log) as prisma:
    for sample in prisma.iterate(paths):
        assert bytes(sample) == Path(sample.path.decode()).read_bytes()
"""


def rings_of(pid: int) -> int:
    files = Path(f"/proc/{pid}/fd").iterdir()
    return sum("io_uring" in str(file.readlink()) for file in files)


@pytest.mark.parametrize("source", ["threads", "io_uring"])
def test_samples_are_the_same_from_every_source(files: list[Path], source: str) -> None:
    with prismaio.connect(memory="16MiB", source=source) as prisma:
        paths = files * 3
        for path, sample in zip(paths, prisma.iterate(paths), strict=True):
            assert bytes(sample) == path.read_bytes()
        missing = files[0].with_name("missing")
        with pytest.raises(FileNotFoundError) as failure:
            list(prisma.iterate([missing]))
        assert failure.value.filename == str(missing)


def test_the_engine_reads_as_it_is_told(files: list[Path]) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        assert rings_of(prisma.stats()["engine_pid"]) == 0
    with prismaio.connect(memory="16MiB", source="io_uring") as prisma:
        if not rings_of(prisma.stats()["engine_pid"]):
            pytest.skip("no io_uring here")
        assert [len(sample) for sample in prisma.iterate(files)] == [
            path.stat().st_size for path in files
        ]


def test_threads_read_where_the_kernel_refuses_io_uring_and_the_log_says_so(
    files: list[Path], tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    words = [REFUSE_IO_URING + READ_ALL, str(log), *map(str, files[:20])]
    subprocess.run([sys.executable, "-W", "error", "-c", *words], check=True, timeout=60)
    assert "no io_uring here (io_uring_setup: Operation not permitted)" in log.read_text()
