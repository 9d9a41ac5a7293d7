"""Plans by path: announced by one consumer, taken by any of a session, each entry once."""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import prismaio
import pytest
from conftest import Eventually
from prismaio import program
from prismaio._core import Sample
from prismaio.plan import Item, range_of


def test_what_was_announced_is_taken_by_name_once(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    with prisma.plan() as plan:
        plan.announce([files[7], (files[8], 10, 20), files[7]])
        plan.settle()
        for _ in range(2):
            sample = prisma.take(files[7])
            assert sample is not None
            assert bytes(sample) == files[7].read_bytes()
        assert prisma.take(files[7]) is None
        assert prisma.take(files[8]) is None
        part = prisma.take(files[8], 10, 20)
        assert part is not None
        assert bytes(part) == files[8].read_bytes()[10:30]
    assert prisma.stats()["direct_reads"] == 0


def test_read_takes_what_is_planned_and_reads_the_rest(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    with prisma.plan() as plan:
        plan.announce(files[:100])
        plan.settle()
        read = [bytes(prisma.read(path)) for path in files]
    assert read == [path.read_bytes() for path in files]
    assert prisma.stats()["direct_reads"] == 200


def test_lanes_are_taken_by_threads_side_by_side(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    lanes = [files[at::4] for at in range(4)]
    with prisma.plan() as plan:
        for number, paths in enumerate(lanes):
            plan.announce(paths, lane=number)
        plan.settle()
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(lambda lane: [bytes(prisma.read(path)) for path in lane], lanes))
    assert read == [[path.read_bytes() for path in paths] for paths in lanes]
    assert prisma.stats()["direct_reads"] == 0


def test_a_plan_may_be_announced_bit_by_bit(prisma: prismaio.Prisma, files: list[Path]) -> None:
    with prisma.plan() as plan:
        for start in range(0, 300, 7):
            plan.announce(path for path in files[start : start + 7])
        plan.settle()
        assert all(prisma.take(path) is not None for path in files)


def test_another_session_does_not_take_from_it(prisma: prismaio.Prisma, files: list[Path]) -> None:
    with prismaio.connect() as other, prisma.plan() as plan:
        assert other.stats()["engine_pid"] == prisma.stats()["engine_pid"]
        plan.announce(files[:5])
        plan.settle()
        assert other.take(files[3]) is None
        assert prisma.take(files[3]) is not None


@pytest.mark.parametrize("end", ["with", "cancel", "garbage"])
def test_the_end_of_a_plan_frees_its_room(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually, end: str
) -> None:
    plan = prisma.plan()
    plan.announce(files)
    eventually(lambda: prisma.stats()["used_bytes"] > 0, "the first reads")
    if end == "with":
        with plan:
            pass
    elif end == "cancel":
        plan.cancel()
    else:
        del plan
        gc.collect()
    eventually(lambda: prisma.stats()["used_bytes"] == 0, "the end of all room taken")
    assert prisma.take(files[200]) is None


def test_a_cancelled_plan_may_begin_again(prisma: prismaio.Prisma, files: list[Path]) -> None:
    plan = prisma.plan()
    plan.announce(files[:50])
    plan.cancel()
    plan.announce(files[50:60])
    plan.settle()
    assert prisma.take(files[55]) is not None
    assert prisma.take(files[5]) is None
    plan.cancel()


def test_what_comes_before_a_mistake_is_announced(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    plan = prisma.plan()
    plan.announce([files[1]])
    with pytest.raises(TypeError, match="plan position 2: 5 "):
        plan.announce([files[2], 5, files[3]])  # type: ignore[list-item]
    plan.announce([files[4]])
    plan.settle()
    assert [prisma.take(files[at]) is not None for at in (1, 2, 3, 4)] == [True, True, False, True]
    with pytest.raises(ValueError, match="lane must be at least 0"):
        plan.announce([], lane=-1)
    with pytest.raises(TypeError, match="iterable of paths"):
        plan.announce("one")


def test_an_error_is_raised_by_the_take(prisma: prismaio.Prisma, tmp_path: Path) -> None:
    with prisma.plan() as plan:
        plan.announce([tmp_path / "absent", tmp_path])
        plan.settle()
        with pytest.raises(FileNotFoundError):
            prisma.take(tmp_path / "absent")
        with pytest.raises(IsADirectoryError):
            prisma.take(tmp_path)


def test_ranges_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    here = os.fsencode(tmp_path)
    end = 2**64 - 1
    assert range_of("a") == (here + b"/a", 0, end)
    assert range_of(b"\xff/../b") == (here + b"/\xff/../b", 0, end)
    assert range_of(("/a", 5)) == (b"/a", 5, end)
    assert range_of((Path("/a"), 5, None)) == (b"/a", 5, end)
    assert range_of(("/a", 5, 0)) == (b"/a", 5, 0)
    monkeypatch.chdir("/")
    assert range_of("a") == (b"/a", 0, end)


# Iterations, at random


def random_plan(chance: random.Random, files: list[Path]) -> Iterator[Item]:
    for _ in range(chance.randrange(1, 800)):
        path = chance.choice(files)
        if chance.random() < 0.2:
            start = chance.randrange(40_000)
            yield path, start, chance.choice([None, 0, 1, chance.randrange(40_000)])
        else:
            spellings: list[Item] = [path, str(path), os.fsencode(path)]
            yield chance.choice(spellings)


def plainly(item: Item) -> bytes:
    path, offset, length = range_of(item)
    return Path(os.fsdecode(path)).read_bytes()[offset : offset + length]


@pytest.mark.parametrize(
    "seed", [*range(16), *(pytest.param(n, marks=pytest.mark.soak) for n in range(16, 500))]
)
def test_any_plan_gives_what_a_plain_loop_gives(files: list[Path], seed: int) -> None:
    chance = random.Random(seed)
    plan = list(random_plan(chance, files))
    held: list[Sample] = []
    with prismaio.connect(
        memory=chance.choice(["1MiB", "2MiB", "64MiB"]),
        depth=chance.choice([1, 2, 16]),
        lookahead=chance.choice([1, 2, 100, 2048]),
    ) as prisma:
        for position, sample in enumerate(prisma.iterate(plan)):
            assert sample.position == position
            assert bytes(sample) == plainly(plan[position]), (seed, position)
            held = [*held, sample][-chance.randrange(1, 5) :]
        del sample, held


def test_a_program_ends_quietly_whatever_it_leaves_open(files: list[Path]) -> None:
    text = (
        "import prismaio, sys\n"
        "prisma = prismaio.connect(memory='8MiB')\n"
        "plan = prisma.plan(); plan.announce(sys.argv[1:])\n"
        "samples = prisma.iterate(sys.argv[1:]); held = [next(samples) for _ in range(9)]\n"
        "views = [sample.view() for sample in held]; file = prisma.open(sys.argv[5])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text, *map(str, files[:200])],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_program_that_waits_for_a_sample(number: int) -> None:
    text = (
        "import prismaio, sys\n"
        "with prismaio.connect(memory='8MiB') as prisma:\n"
        "    print(prisma.stats()['engine_pid'], flush=True); sys.stdin.readline()\n"
        "    samples = prisma.iterate(['/etc/passwd'])\n"
        "    print(flush=True); next(samples)\n"
    )
    command = [sys.executable, "-c", text]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        engine = int(child.stdout.readline())
        os.kill(engine, signal.SIGSTOP)
        try:
            child.stdin.write(b"\n")
            child.stdin.flush()
            child.stdout.readline()
            sent = time.monotonic()
            child.send_signal(number)
            _, said = child.communicate(timeout=20)
            assert time.monotonic() - sent < 1.5  # after 2 s it would read directly
        finally:
            os.kill(engine, signal.SIGCONT)
    assert said.count(b"Traceback") == (number == signal.SIGINT)
    assert child.returncode == -number


def test_a_home_that_cannot_be_written_does_not_matter(files: list[Path]) -> None:
    text = (
        "import prismaio, sys\n"
        "with prismaio.connect(memory='8MiB') as prisma:\n"
        "    assert sum(map(len, prisma.iterate(sys.argv[1:]))) > 0\n"
        "    assert prisma.stats()['engine_pid'] > 0\n"
    )
    environment = os.environ | {"HOME": "/proc/none", "TMPDIR": "/proc/none"}
    environment.pop(program.VARIABLE, None)
    subprocess.run(
        [sys.executable, "-W", "error", "-c", text, *map(str, itertools.islice(files, 1, 50))],
        check=True,
        timeout=30,
        env=environment,
        cwd="/",
    )
