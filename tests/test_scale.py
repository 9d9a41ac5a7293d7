"""Files and plans far larger than the memory they go through."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import prismaio
import pytest
from conftest import Eventually

GIB = 1 << 30
MIB = 1 << 20
MARKS = {0: b"first", 1 * GIB - 3: b"across", 2 * GIB - 4: b"last"}


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """2 GiB of which three places are not zero."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2 * GIB)
        for offset, mark in MARKS.items():
            file.seek(offset)
            file.write(mark)
        file.truncate(2 * GIB)
    return path


def pss_bytes(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (line,) = [line for line in rollup.splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) << 10


def expected(offset: int, length: int) -> bytes:
    """What stands there in the sparse file."""
    data = bytearray(length)
    for place, mark in MARKS.items():
        for at, byte in enumerate(mark, place - offset):
            if 0 <= at < length and place - offset + len(mark) > 0:
                data[at] = byte
    return bytes(data)


def check(pieces: Iterator[bytes], prisma: prismaio.Prisma) -> None:
    """All of it came, through 64 MiB."""
    engine, before = prisma.stats()["engine_pid"], pss_bytes(os.getpid())
    offset = 0
    for number, piece in enumerate(pieces):
        assert piece == expected(offset, len(piece))
        offset += len(piece)
        if number % 64 == 0:
            assert prisma.stats()["used_bytes"] <= 64 * MIB
            assert pss_bytes(engine) + pss_bytes(os.getpid()) - before <= 64 * MIB + 32 * MIB
    assert offset == 2 * GIB
    assert prisma.stats()["direct_bytes"] < 1 * GIB  # most of it was read ahead


@pytest.mark.timeout(120)
def test_two_gib_go_through_64_mib_piece_by_piece(sparse: Path) -> None:
    with prismaio.connect(memory="64MiB", depth=4) as prisma:
        (sample,) = prisma.iterate([sparse])
        assert sample.is_large
        assert len(sample) == 2 * GIB
        check((bytes(chunk) for chunk in sample.chunks()), prisma)


@pytest.mark.timeout(120)
def test_two_gib_go_through_64_mib_as_a_file(sparse: Path) -> None:
    with prismaio.connect(memory="64MiB", depth=4) as prisma, prisma.plan() as plan:
        plan.announce([sparse])
        plan.settle()
        with prisma.open(sparse) as file:
            check(iter(lambda: file.read(3 * MIB), b""), prisma)
            file.seek(-4, os.SEEK_END)
            assert file.read() == b"last"


def test_ten_million_entries_are_streamed_in(files: list[Path]) -> None:
    drawn = 0

    def plan() -> Iterator[Path]:
        nonlocal drawn
        for drawn, path in enumerate(itertools.cycle(files[1:]), 1):
            if drawn > 10_000_000:
                return
            yield path

    with prismaio.connect(memory="4MiB", lookahead=2048) as prisma:
        engine = prisma.stats()["engine_pid"]
        samples = prisma.iterate(plan())
        assert bytes(next(samples)) == files[1].read_bytes()
        assert drawn <= 512  # neither the plan nor a full window comes before the first sample
        for _ in itertools.islice(samples, 3000):
            pass
        held = pss_bytes(engine) + pss_bytes(os.getpid())
        for _ in itertools.islice(samples, 12_000):
            pass
        assert drawn <= 15_001 + 2048 + 256
        assert pss_bytes(engine) + pss_bytes(os.getpid()) - held < 2 * MIB


def test_a_large_file_fills_the_buffer_and_gives_it_back_however_it_is_left(
    prisma: prismaio.Prisma, tmp_path: Path, eventually: Eventually
) -> None:
    (tmp_path / "large").write_bytes(os.urandom(32 * MIB))
    for depth in [3, 4] * 8:
        samples = prisma.iterate([tmp_path / "large"])
        sample = next(samples)
        eventually(lambda: prisma.stats()["used_bytes"] >= 15 * MIB, "the buffer full of chunks")
        del sample  # whoever makes room next finds that nobody wants the chunk it is for
        prisma.tune(depth=depth)
        samples.close()
        eventually(lambda: prisma.stats()["used_bytes"] == 0, "the end of all room taken")
