"""Any plan, workers, depth, budget and jitter, against a plain read loop."""

from __future__ import annotations

import random
from collections.abc import Sequence

import prismaio
from prismaio.testing import SlowStorage

from trials.consumers import Crew, Heard, by_iteration, check_warnings, warned_of
from trials.data import Wanted, make_files, plainly, random_plan
from trials.suite import Case, Suite, expect, wait_for

__all__ = ["RandomPlans"]

SPECIAL_SIZES = [0, 0, 1, 4095, 4096, 4097, 262_144, 262_145, 700_000, 1_048_577, 3_500_000]


class RandomPlans(Suite):
    """The same samples, errors and order as without PRISMA."""

    name = "random"
    cases = 500
    limit_s = 40
    batch = 10

    def prepare(self) -> None:
        chance = random.Random(f"files/{self.seed}")
        sizes = SPECIAL_SIZES + [int(chance.lognormvariate(10.5, 1.2)) for _ in range(49)]
        source = self.folder / "source"
        source.mkdir()
        self.data = make_files(source, chance, sizes)
        self.slow: SlowStorage | None = None

    def run(self, case: Case) -> None:
        chance = case.chance()
        data, length = self.data, chance.randrange(1, 400)
        if chance.random() < 0.15 and SlowStorage.available() is None:
            data, length = self.data.below(self._slow(chance).path), min(length, 120)
        plan = list(random_plan(chance, data, length))
        expected = [(position, plainly(self._at_home(one))) for position, one in enumerate(plan)]
        with prismaio.connect(
            memory=chance.choice(["1MiB", "2MiB", "4MiB", "64MiB"]),
            depth=chance.randrange(1, 17),
            lookahead=chance.choice([1, 2, 64, 2048]),
        ) as prisma:
            workers = chance.choice([0, 0, 1, 2, 4])
            with warned_of() as warned:
                if workers == 0:
                    heard = by_iteration(prisma, plan, chance)
                else:
                    heard = by_workers(prisma, plan, chance, workers)
            check_warnings(warned)
            wait_for(lambda: prisma.stats()["used_bytes"] == 0, "the end of all room taken", 3)
        check_same(heard, expected, plan)

    def _slow(self, chance: random.Random) -> SlowStorage:
        """The files on slow storage of this case's own slowness, mounted once per batch."""
        if self.slow is None:
            self.slow = self.stack.enter_context(SlowStorage(self.folder / "source"))
        self.slow.change(
            open_delay_s=chance.choice([0.0, 0.001, 0.004]),
            read_delay_s=chance.choice([0.0, 0.001]),
            jitter_share=chance.random(),
            jitter=chance.choice(["uniform", "exponential"]),
            seed=chance.randrange(1 << 30),
        )
        return self.slow

    def _at_home(self, wanted: Wanted) -> Wanted:
        """The same range of the file that is not slow."""
        if self.slow is None:
            return wanted
        slow = str(self.slow.path).encode()
        return wanted._replace(path=wanted.path.replace(slow, self.data.folder, 1))


def by_workers(
    prisma: prismaio.Prisma, plan: Sequence[Wanted], chance: random.Random, workers: int
) -> list[Heard]:
    """Worker processes, each a lane of one plan, part of which is announced before they start."""
    numbered = list(enumerate(plan))
    parts = [numbered[lane::workers] for lane in range(workers)]
    before = chance.choice([0.0, 0.5, 1.0])
    with prisma.plan() as announced:

        def announce(start: float, end: float) -> None:
            for lane, part in enumerate(parts):
                chosen = part[int(start * len(part)) : int(end * len(part))]
                announced.announce([wanted for _, wanted in chosen], lane=lane)

        announce(0, before)
        method = "spawn" if chance.random() < 0.15 else "fork"
        crew = Crew(prisma, parts, seed=f"{chance.random()}", method=method)
        announce(before, 1)
        told = crew.all_told()
    for one in told:
        check_warnings(one.warned)
    return sorted(heard for one in told for heard in one.heard)


def check_same(heard: list[Heard], expected: list[Heard], plan: Sequence[Wanted]) -> None:
    """Raises at the first difference."""
    for got, wanted, item in zip(heard, expected, plan, strict=False):
        expect(got == wanted, f"{item!r}: {got} came instead of {wanted}")
    expect(len(heard) == len(expected), f"{len(heard)} samples came instead of {len(expected)}")
