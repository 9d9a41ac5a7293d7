"""The ways to read through PRISMA: one iteration, or workers that take by name."""

from __future__ import annotations

import multiprocessing
import os
import random
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

import prismaio
from prismaio._core import Sample

from trials.data import Outcome, Wanted, digest, errno_of
from trials.suite import expect

__all__ = ["Crew", "Heard", "Told", "by_iteration", "by_name", "check_warnings", "warned_of"]

Heard = tuple[int, Outcome]  # a position, and what came there


class Told(NamedTuple):
    """What a worker says at its end."""

    heard: list[Heard]
    warned: list[str]


def by_iteration(
    prisma: prismaio.Prisma, plan: Sequence[Wanted], chance: random.Random
) -> list[Heard]:
    """All of a plan, some samples held for a while and looked at again when they go."""
    heard: list[Heard] = []
    held = Held(chance.randrange(4))
    samples = prisma.iterate(plan)
    while True:
        position = len(heard)
        try:
            sample = next(samples)
            expect(sample.path == plan[position].path, f"{sample.path!r} came at {position}")
            outcome = look_at(sample, chance)
        except StopIteration:
            break
        except OSError as error:  # of a large sample: at its use
            check_name(error, plan[position].path)
            heard.append((position, errno_of(error)))
            continue
        held.add(sample, outcome)
        heard.append((sample.position, outcome))
    held.check()
    return heard


def by_name(
    prisma: prismaio.Prisma,
    plan: Sequence[tuple[int, Wanted]],
    chance: random.Random,
    *,
    as_files: bool = True,
) -> list[Heard]:
    """Each of these, by read(), take() or, where allowed, open().

    What no plan holds is a real file to open(): it may be short, and its errors have no name.
    """
    held = Held(chance.randrange(3))
    heard: list[Heard] = []
    for position, wanted in plan:
        try:
            heard.append((position, read_one(prisma, wanted, chance, held, as_files)))
        except OSError as error:
            check_name(error, wanted.path)
            heard.append((position, errno_of(error)))
    held.check()
    return heard


def read_one(
    prisma: prismaio.Prisma, wanted: Wanted, chance: random.Random, held: Held, as_file: bool
) -> Outcome:
    way = chance.random()
    if as_file and way < 0.3 and wanted == Wanted(wanted.path):
        with prisma.open(wanted.path) as file:
            return digest(file.read())
    sample = prisma.take(*wanted) if way < 0.6 else None
    if sample is None:
        sample = prisma.read(*wanted)
    expect(sample.path == wanted.path, f"{sample.path!r} came for {wanted.path!r}")
    outcome = look_at(sample, chance)
    held.add(sample, outcome)
    return outcome


def look_at(sample: Sample, chance: random.Random) -> str:
    """Its digest, by one of the ways to get at the bytes."""
    way = chance.random()
    if way < 0.6:
        expect(len(sample) == sample.view().nbytes, "a sample's length is not its buffer's")
        return digest(sample.view())
    if way < 0.8:
        return digest(bytes(sample))
    return digest(b"".join(bytes(chunk) for chunk in sample.chunks()))


def check_name(error: OSError, path: bytes) -> None:
    name = error.filename
    expect(name is not None and os.fsencode(name) == path, f"{error!r} does not name {path!r}")


class Held:
    """The last few samples, which must stay what they were."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._samples: deque[tuple[Sample, str]] = deque()

    def add(self, sample: Sample, outcome: str) -> None:
        self._samples.append((sample, outcome))
        while len(self._samples) > self._number:
            self._check(*self._samples.popleft())

    def check(self) -> None:
        while self._samples:
            self._check(*self._samples.popleft())

    def _check(self, sample: Sample, outcome: str) -> None:
        expect(digest(sample.view()) == outcome, f"{sample.path!r} changed while it was held")


@contextmanager
def warned_of() -> Iterator[list[str]]:
    """Collects what is warned of meanwhile."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield texts
        texts.extend(str(warning.message) for warning in warned)


def check_warnings(warned: Sequence[str], *allowed: str) -> None:
    """At most one of each: of a large sample, of many views held, and of what else is allowed."""
    kinds = ("brought together", "more than half of its buffer", *allowed)
    for kind in kinds:
        expect(sum(kind in text for text in warned) <= 1, f"warned twice: {warned}")
    for text in warned:
        expect(any(kind in text for kind in kinds), f"warned: {text}")


Work = Callable[[prismaio.Prisma, Sequence[tuple[int, Wanted]], random.Random], list[Heard]]


class Crew:
    """Worker processes, each with its part of a plan."""

    def __init__(
        self,
        prisma: prismaio.Prisma,
        parts: Sequence[Sequence[tuple[int, Wanted]]],
        *,
        seed: str,
        method: str = "fork",
        work: Work = by_name,
    ) -> None:
        context = multiprocessing.get_context(method)
        self.workers: list[BaseProcess] = []
        self._ends: list[Connection] = []
        for lane, part in enumerate(parts):
            mine, theirs = context.Pipe()
            worker = context.Process(  # type: ignore[attr-defined]
                target=_work, args=(prisma, part, f"{seed}/{lane}", work, theirs), daemon=True
            )
            worker.start()
            theirs.close()
            self.workers.append(worker)
            self._ends.append(mine)

    def told(self, lane: int) -> Told:
        """What a worker says at its end."""
        try:
            said = self._ends[lane].recv()
        except EOFError:
            self.workers[lane].join()
            raise AssertionError(
                f"worker {lane} ended with status {self.workers[lane].exitcode}"
            ) from None
        assert isinstance(said, Told)
        self.workers[lane].join()
        return said

    def all_told(self) -> list[Told]:
        return [self.told(lane) for lane in range(len(self.workers))]


def _work(
    prisma: prismaio.Prisma,
    part: Sequence[tuple[int, Wanted]],
    seed: str,
    work: Work,
    end: Connection,
) -> None:
    with warned_of() as warned:
        heard = work(prisma, part, random.Random(seed))
    end.send(Told(heard, warned))
