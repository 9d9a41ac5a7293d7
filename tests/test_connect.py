"""connect(): the bytes and the order of a plain loop, from an engine of its own."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import prismaio
import pytest


def wait_until(condition: Callable[[], bool], limit_s: float = 5) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number:03}" for number in range(300)]
    for number, path in enumerate(paths):
        path.write_bytes(os.urandom(100 * number))
    return paths


@pytest.fixture
def prisma() -> Iterator[prismaio.Prisma]:
    with prismaio.connect(memory="16MiB", depth=4) as connected:
        yield connected


def test_samples_come_in_their_order_byte_for_byte(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    plan = files * 3
    read = [(sample.position, bytes(sample)) for sample in prisma.iterate(plan)]
    assert read == [(at, path.read_bytes()) for at, path in enumerate(plan)]
    assert prisma.stats()["reads"] > 0


def test_samples_are_read_only_views_of_the_shared_buffer(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    sample = next(iter(prisma.iterate(files[5:])))
    assert sample.is_shared
    assert sample.path == os.fsencode(files[5])
    with pytest.raises(TypeError):
        sample.view()[0] = 1


def test_views_outlive_the_iteration_and_the_connection(files: list[Path]) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        views = [sample.view() for sample in itertools.islice(prisma.iterate(files), 50)]
    assert [bytes(view) for view in views] == [path.read_bytes() for path in files[:50]]


def test_a_missing_file_raises_what_open_would(prisma: prismaio.Prisma, tmp_path: Path) -> None:
    there, absent = tmp_path / "there", tmp_path / "absent"
    there.write_bytes(b"there")
    plan = prisma.iterate([there, absent])
    assert bytes(next(plan)) == b"there"
    with pytest.raises(FileNotFoundError) as failure:
        next(plan)
    assert failure.value.filename == str(absent)


def test_names_of_any_bytes_are_read(prisma: prismaio.Prisma, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff \n\x01"
    with open(name, "wb") as file:  # noqa: PTH123 - pathlib knows no such names
        file.write(b"odd")
    assert bytes(next(prisma.iterate([name]))) == b"odd"


def test_an_endless_plan_can_be_left(prisma: prismaio.Prisma, files: list[Path]) -> None:
    for _ in range(20):
        read = itertools.islice(prisma.iterate(itertools.cycle(files)), 3)
        assert [bytes(sample) for sample in read] == [path.read_bytes() for path in files[:3]]
    assert wait_until(lambda: prisma.stats()["used_bytes"] == 0)


def test_what_a_plan_raises_comes_after_the_samples_before_it(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    def plan() -> Iterator[Path]:
        yield from files[:10]
        raise RuntimeError("no more")

    read = prisma.iterate(plan())
    for path in files[:10]:
        assert bytes(next(read)) == path.read_bytes()
    with pytest.raises(RuntimeError, match="no more"):
        next(read)


def test_a_range_of_an_unplanned_file_is_read(prisma: prismaio.Prisma, files: list[Path]) -> None:
    assert bytes(prisma.read(files[9], 10, 20)) == files[9].read_bytes()[10:30]


def test_a_file_larger_than_the_memory_goes_through_it(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(os.urandom(5 << 20))
    with prismaio.connect(memory="1MiB") as prisma:
        assert bytes(next(prisma.iterate([large]))) == large.read_bytes()


def test_a_killed_engine_costs_no_sample(prisma: prismaio.Prisma, files: list[Path]) -> None:
    read = []
    for sample in prisma.iterate(files):
        read.append(bytes(sample))
        if len(read) == 100:
            os.kill(prisma.stats()["engine_pid"], signal.SIGKILL)
    assert read == [path.read_bytes() for path in files]


def test_the_engine_ends_with_its_last_client(files: list[Path]) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        next(prisma.iterate(files))
        pid = prisma.stats()["engine_pid"]
        assert is_alive(pid)
    assert wait_until(lambda: not is_alive(pid), 3)


def test_the_engine_ends_when_its_program_is_killed(files: list[Path]) -> None:
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        prisma = prismaio.connect(memory="16MiB")
        next(prisma.iterate(files))
        os.write(outlet, str(prisma.stats()["engine_pid"]).encode())
        signal.pause()
    engine = int(os.read(inlet, 20))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert wait_until(lambda: not is_alive(engine), 3)


def test_a_forked_child_reads_directly_and_disturbs_nobody(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    plan = prisma.iterate(files)
    next(plan)
    child = os.fork()
    if child == 0:
        same = all(bytes(prisma.read(path)) == path.read_bytes() for path in files)
        os._exit(0 if same else 1)
    rest = [bytes(sample) for sample in plan]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert rest == [path.read_bytes() for path in files[1:]]


@pytest.mark.parametrize(
    "setting",
    [
        {"memory": "4KiB"},
        {"memory": "much"},
        {"memory": "9000TiB"},
        {"depth": 0},
        {"depth": 10**9},
        {"lookahead": 0},
    ],
)
def test_an_impossible_setting_is_named(setting: dict[str, object]) -> None:
    with pytest.raises(prismaio.SettingError, match=next(iter(setting))):
        prismaio.connect(**setting)  # type: ignore[arg-type]


def test_a_closed_connection_says_so(files: list[Path]) -> None:
    prisma = prismaio.connect(memory="16MiB")
    prisma.close()
    with pytest.raises(ValueError, match="closed"):
        prisma.read(files[0])
