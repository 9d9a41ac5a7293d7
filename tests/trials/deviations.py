"""Reads that no plan foresaw: served directly, and never for ever."""

from __future__ import annotations

import random

import prismaio

from trials.consumers import by_name
from trials.data import Wanted, plainly
from trials.killed import OnSlowStorage
from trials.random_plans import check_same
from trials.suite import Case

__all__ = ["Deviations"]


class Deviations(OnSlowStorage):
    """1 %, 10 % or all of the reads are others than planned, through a small or a large buffer."""

    name = "deviations"
    cases = 60
    limit_s = 10

    def run(self, case: Case) -> None:
        chance = case.chance()
        share = [0.01, 0.1, 1.0][case.number % 3]
        planned = [chance.choice(self.data.files) for _ in range(300)]
        read = list(deviating(planned, self.data.files, chance, share))
        expected = list(enumerate(plainly(Wanted(self.home.path(name))) for name in read))
        wanted = [Wanted(self.data.path(name)) for name in read]
        memory = chance.choice(["1MiB", "16MiB"])
        with prismaio.connect(memory=memory, depth=8) as prisma, prisma.plan() as plan:
            plan.announce([Wanted(self.data.path(name)) for name in planned])
            heard = by_name(prisma, list(enumerate(wanted)), chance)
        check_same(heard, expected, wanted)


def deviating(
    planned: list[bytes], files: list[bytes], chance: random.Random, share: float
) -> list[bytes]:
    """A plan, with a share of its reads replaced, swapped, left out, or done once more."""
    read = list(planned)
    for _ in range(round(share * len(planned))):
        place = chance.randrange(len(read))
        way = chance.randrange(4)
        if way == 0:
            read[place] = chance.choice(files)
        elif way == 1:
            other = chance.randrange(len(read))
            read[place], read[other] = read[other], read[place]
        elif way == 2:
            read.insert(chance.randrange(len(read)), read[place])
        elif len(read) > 1:
            del read[place]
    return read + chance.sample(files, 5)  # and past the end
