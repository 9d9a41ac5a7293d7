"""Workers of every kind, hungry ones, and one slow file among many: order and bytes stay."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import prismaio
import pytest
from conftest import Eventually
from prismaio.testing import SlowStorage
from trials.consumers import Crew, Heard, by_name
from trials.data import Wanted, digest, plainly

slowly = pytest.mark.skipif(
    SlowStorage.available() is not None, reason=str(SlowStorage.available())
)


def sockets() -> set[str]:
    """Of this process, by what the kernel calls them."""
    folder = Path("/proc/self/fd")
    links = [os.readlink(path) for path in folder.iterdir() if path.is_symlink()]  # noqa: PTH115
    return {link for link in links if link.startswith("socket:")}


def read_all(prisma: prismaio.Prisma, paths: list[Path]) -> tuple[list[str], set[str]]:
    """What a worker reads, and its sockets afterwards."""
    return [digest(sample.view()) for sample in prisma.iterate(paths)], sockets()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_read_what_their_parent_reads_over_sockets_of_their_own(
    files: list[Path], method: str, used_before: bool
) -> None:
    expected = [digest(path.read_bytes()) for path in files]
    others = sockets()
    with prismaio.connect(memory="4MiB", depth=4) as prisma:
        if used_before:
            assert read_all(prisma, files[:100])[0] == expected[:100]
        parents = sockets() - others
        assert parents
        with multiprocessing.get_context(method).Pool(2) as pool:
            told = pool.starmap(read_all, [(prisma, files), (prisma, files[::-1])])
        assert [heard for heard, _ in told] == [expected, expected[::-1]]
        assert not parents & (told[0][1] | told[1][1])
        assert read_all(prisma, files[:100])[0] == expected[:100]


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowStorage]:
    """1,000 files of a page each, on storage where each read waits."""
    for number in range(1000):
        (tmp_path / f"{number:03}").write_bytes(os.urandom(16) * 256)
    with SlowStorage(tmp_path, open_delay_s=0.0005) as mounted:
        yield mounted


def in_batches(
    prisma: prismaio.Prisma, part: Sequence[tuple[int, Wanted]], chance: random.Random
) -> list[Heard]:
    """As a DataLoader's worker: a batch is held until it is whole."""
    heard: list[Heard] = []
    for start in range(0, len(part), 32):
        batch = [(position, prisma.read(*wanted)) for position, wanted in part[start : start + 32]]
        heard += [(position, digest(sample.view())) for position, sample in batch]
    return heard


@slowly
def test_a_buffer_far_smaller_than_all_batches_feeds_all_workers(tmp_path: Path) -> None:
    names = [f"{number:03}" for number in range(768)]
    for name in names:
        (tmp_path / name).write_bytes(os.urandom(16) * 3000)
    with SlowStorage(tmp_path, open_delay_s=0.001) as mounted:
        plan = list(enumerate(Wanted(os.fsencode(mounted.path / name)) for name in names))
        batches = [plan[start : start + 32] for start in range(0, 768, 32)]
        lanes = [list(chain.from_iterable(batches[lane::4])) for lane in range(4)]
        with prismaio.connect(memory="1MiB", depth=8) as prisma, prisma.plan() as announced:
            for number, lane in enumerate(lanes):
                announced.announce([wanted for _, wanted in lane], lane=number)
            told = Crew(prisma, lanes, seed="", work=in_batches).all_told()
            reads, rereads = (prisma.stats()[name] for name in ("reads", "rereads"))
    heard = sorted(one for each in told for one in each.heard)
    right = [plainly(Wanted(os.fsencode(tmp_path / name))) for name in names]
    assert heard == list(enumerate(right))
    assert reads > 600  # by the engine: it did not leave the workers to themselves
    assert rereads < 0.1 * reads  # though what they hold leaves ten samples of room for all


@slowly
def test_one_slow_file_holds_up_nothing_until_the_buffer_is_full(
    slow: SlowStorage, eventually: Eventually
) -> None:
    paths = sorted(slow.path.iterdir())
    heard: list[bytes] = []
    with prismaio.connect(memory="1MiB", depth=4, lookahead=1000) as prisma:
        with slow.hold("005") as held:
            samples = prisma.iterate(paths)
            consumer = threading.Thread(target=lambda: heard.extend(map(bytes, samples)))
            consumer.start()
            # One page each: most of 256 fit. Reading ahead rests when 1/8 is not free.
            eventually(lambda: slow.counters()["opens"] >= 200, "reads past the slow file")
            assert len(heard) == 5
            held.drop()
            consumer.join()
        read_by_engine = prisma.stats()["reads"]
    assert heard == [path.read_bytes() for path in paths]
    assert read_by_engine >= 990


@slowly
def test_names_are_taken_in_any_order_while_one_is_held(
    slow: SlowStorage, eventually: Eventually
) -> None:
    paths = sorted(slow.path.iterdir())[:100]
    wanted = [(n, Wanted(os.fsencode(path))) for n, path in enumerate(paths) if n != 5]
    with prismaio.connect(memory="1MiB", depth=4) as prisma, prisma.plan() as plan:
        with slow.hold("005"):
            plan.announce(paths)
            plan.settle()
            heard = by_name(prisma, wanted, random.Random(1))
        assert [outcome for _, outcome in heard] == [plainly(one) for _, one in wanted]
        assert bytes(prisma.read(paths[5])) == paths[5].read_bytes()
