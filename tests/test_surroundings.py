"""Full disks, folders that cannot be written, other copies and other users: nobody notices."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import prismaio
import pytest
from prismaio import _core, program

# Reads the files named, and says whether all came and which engine they came from.
READER = """
import json, sys, warnings
from pathlib import Path
import prismaio
warnings.simplefilter("error")
paths = sys.argv[1:]
with prismaio.connect(memory="8MiB") as prisma:
    same = all(bytes(s) == Path(p).read_bytes() for s, p in zip(prisma.iterate(paths), paths))
    print(json.dumps([same, prisma.stats()["engine_pid"]]))
"""
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")


def reader(paths: Sequence[Path], *before: str | Path, **rest: object) -> subprocess.Popen[str]:
    """A program of its own, run by what stands before it."""
    environment = {name: value for name, value in os.environ.items() if name != program.VARIABLE}
    words = [*before, sys.executable, "-B", "-c", READER, *paths]
    started: subprocess.Popen[str] = subprocess.Popen(
        list(map(str, words)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"HOME": "/proc/none", "TMPDIR": "/proc/none"},
        **rest,  # type: ignore[call-overload]
    )
    return started


def engine_of(reading: subprocess.Popen[str]) -> int:
    """The engine that all came from."""
    said, complaints = reading.communicate(timeout=50)
    assert (reading.returncode, complaints) == (0, "")
    same, engine = json.loads(said)
    assert same
    assert isinstance(engine, int)
    return engine


def test_eight_copies_in_one_folder_do_not_notice_each_other(
    files: list[Path], tmp_path: Path
) -> None:
    listed = sorted(tmp_path.iterdir())
    copies = [reader(files, cwd=tmp_path) for _ in range(8)]
    engines = [engine_of(copy) for copy in copies]
    assert len(set(engines) - {0}) == 8
    assert sorted(tmp_path.iterdir()) == listed


def own_mounts(tmp_path: Path) -> list[str]:
    """A command before others: no room in /dev/shm and in the folder "full", "fixed" read-only."""
    for name in ("full", "fixed"):
        (tmp_path / name).mkdir()
    script = (
        "mount -t tmpfs -o size=4k tmpfs /dev/shm && mount -t tmpfs -o size=64k tmpfs full && "
        "{ head -c 1M /dev/zero > full/taken; mount -t tmpfs -o ro tmpfs fixed; } 2>/dev/null && "
        'cd "$1" && shift && exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def mounts_allowed() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not mounts_allowed(), reason="needs root and mounts of its own")
@pytest.mark.parametrize("folder", ["full", "fixed"])
def test_without_room_on_any_disk_all_is_as_ever(
    files: list[Path], tmp_path: Path, folder: str
) -> None:
    reading = reader(files, *own_mounts(tmp_path), folder, cwd=tmp_path)
    assert engine_of(reading) != 0


@pytest.mark.skipif(not mounts_allowed(), reason="needs root and mounts of its own")
def test_a_log_on_a_full_disk_does_not_matter(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRISMAIO_LOG", str(tmp_path / "full" / "log"))
    reading = reader(files, *own_mounts(tmp_path), "full", cwd=tmp_path)
    assert engine_of(reading) != 0


@as_root
def test_another_user_can_neither_connect_nor_look(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    meeting = prisma._connection.meeting()
    assert meeting is not None
    engine = prisma.stats()["engine_pid"]

    def intrude() -> bool:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        with pytest.raises(PermissionError):
            _core.Client(meeting.address)
        with pytest.raises(PermissionError):
            os.listdir(f"/proc/{engine}/fd")  # noqa: PTH208
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.settimeout(10)
            stranger.connect("\0" + meeting.address)
            return stranger.recv(100) == b""  # shown out without a word

    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = 0 if intrude() else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [bytes(s) for s in prisma.iterate(files)] == [path.read_bytes() for path in files]


@pytest.mark.parametrize("closed", [[0], [1, 2], [0, 1, 2]])
def test_a_program_that_closed_its_standard_descriptors_has_an_engine(
    tmp_path: Path, closed: list[int]
) -> None:
    said = tmp_path / "said"
    text = f"""
import os, prismaio
for number in {closed}:
    os.close(number)
with prismaio.connect() as prisma, open({str(said)!r}, "w") as file:
    same = bytes(next(prisma.iterate([{__file__!r}]))) == open({__file__!r}, "rb").read()
    file.write(f"{{same}} {{prisma.stats()['engine_pid'] > 0}}")
"""
    subprocess.run([sys.executable, "-B", "-c", text], check=False, timeout=50)
    assert said.read_text() == "True True"


@as_root
def test_who_gives_up_rights_reads_no_more_with_them(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    secret.chmod(0o600)
    text = f"""
import os, prismaio, sys
prisma = prismaio.connect()
assert bytes(next(prisma.iterate([{str(secret)!r}]))) == b"secret"
os.setegid({NOBODY})
os.seteuid({NOBODY})
try:
    next(prisma.iterate([{str(secret)!r}]))
except PermissionError:
    sys.exit(3)
"""
    done = subprocess.run([sys.executable, "-B", "-c", text], check=False, timeout=50)
    assert done.returncode == 3


@pytest.mark.parametrize("disable", [False, True])
def test_a_program_ends_well_while_a_thread_of_it_still_reads(disable: bool) -> None:
    text = f"""
import prismaio, threading
prisma = prismaio.connect(disable={disable})
begun = threading.Event()
def read():
    while True:
        prisma.read({__file__!r})
        begun.set()
threading.Thread(target=read, daemon=True).start()
begun.wait()
"""
    ended = [
        subprocess.run([sys.executable, "-B", "-c", text], check=False, timeout=50, stderr=-1)
        for _ in range(3)
    ]
    assert [(one.returncode, one.stderr) for one in ended] == [(0, b"")] * 3
