"""kill -9 and kill -STOP of an engine or a worker at any moment: what goes on goes on."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Sequence

import prismaio
from prismaio.testing import SlowStorage

from trials.consumers import (
    Crew,
    Heard,
    Told,
    by_iteration,
    by_name,
    check_warnings,
    look_at,
    warned_of,
)
from trials.data import DataSet, Wanted, make_files, plainly
from trials.random_plans import check_same
from trials.suite import Case, Suite, expect, wait_for

__all__ = ["KilledEngines", "KilledWorkers", "OnSlowStorage", "StoppedEngines"]


class OnSlowStorage(Suite):
    """120 small files of which each read waits: reading goes through the buffer."""

    batch = 10
    on_slow_storage = True

    def prepare(self) -> None:
        chance = random.Random(f"files/{self.seed}")
        source = self.folder / "source"
        source.mkdir()
        sizes = [chance.randrange(60_000) for _ in range(120)]
        self.home = make_files(source, chance, sizes)
        slow = SlowStorage(source, open_delay_s=0.001, jitter_share=1, seed=self.seed)
        self.data: DataSet = self.home.below(self.stack.enter_context(slow).path)

    def plan(self, chance: random.Random, length: int) -> tuple[list[Wanted], list[Heard]]:
        """A plan, and what a plain loop hears of it."""
        names = [chance.choice(self.data.files) for _ in range(length)]
        outcomes = [plainly(Wanted(self.home.path(name))) for name in names]
        return [Wanted(self.data.path(name)) for name in names], list(enumerate(outcomes))


def engine_of(prisma: prismaio.Prisma) -> int:
    return prisma.stats()["engine_pid"]


def at(moment_s: float, pid: int, number: int) -> threading.Timer:
    """Sends a signal a little later."""
    timer = threading.Timer(moment_s, os.kill, (pid, number))
    timer.start()
    return timer


class KilledEngines(OnSlowStorage):
    """Reads go on directly after one warning; the next iteration joins another engine."""

    name = "kill-engine"
    cases = 50
    limit_s = 30

    def run(self, case: Case) -> None:
        chance = case.chance()
        plan, expected = self.plan(chance, chance.randrange(50, 300))
        memory = chance.choice(["1MiB", "16MiB"])
        with prismaio.connect(memory=memory, depth=chance.randrange(1, 9)) as prisma:
            killed, moment_s = engine_of(prisma), chance.uniform(0, 0.25)
            consume = self._alone if chance.random() < 0.6 else self._by_workers
            for told in consume(prisma, plan, chance, moment_s):
                check_warnings(told.warned, "engine is gone")
                check_same(told.heard, [expected[place] for place, _ in told.heard], plan)
            again = by_iteration(prisma, plan[:30], chance)
            check_same(again, expected[:30], plan)
            expect(engine_of(prisma) not in (0, killed), "no other engine was joined")
            expect(prisma.stats()["lost_engines"] == 1, "the loss of the engine was not noticed")

    def _alone(
        self, prisma: prismaio.Prisma, plan: Sequence[Wanted], chance: random.Random, when_s: float
    ) -> list[Told]:
        killer = at(when_s, engine_of(prisma), signal.SIGKILL)
        with warned_of() as warned:
            heard = by_iteration(prisma, plan, chance)
            killer.join()
            wait_for(lambda: not engine_lives(prisma), "the engine's end", 5)
            prisma.iterate([])
        expect(len(heard) == len(plan), f"{len(heard)} samples of {len(plan)}")
        return [Told(heard, warned)]

    def _by_workers(
        self, prisma: prismaio.Prisma, plan: Sequence[Wanted], chance: random.Random, when_s: float
    ) -> list[Told]:
        parts = [list(enumerate(plan))[lane::2] for lane in range(2)]
        with warned_of() as warned, prisma.plan() as announced:
            for lane, part in enumerate(parts):
                announced.announce([wanted for _, wanted in part], lane=lane)
            crew = Crew(prisma, parts, seed=f"{chance.random()}")
            killer = at(when_s, engine_of(prisma), signal.SIGKILL)
            told = crew.all_told()
            killer.join()
            wait_for(lambda: not engine_lives(prisma), "the engine's end", 5)
            prisma.iterate([])
        expect(sum(len(one.heard) for one in told) == len(plan), "samples are missing")
        return [*told, Told([], warned)]


def engine_lives(prisma: prismaio.Prisma) -> bool:
    client = prisma._connection._client
    return client is not None and client.engine_lives


class KilledWorkers(OnSlowStorage):
    """The others go on, what the dead one held comes back, and its part can be read by others."""

    name = "kill-worker"
    cases = 50
    limit_s = 30

    def run(self, case: Case) -> None:
        chance = case.chance()
        plan, expected = self.plan(chance, chance.randrange(60, 240))
        parts = [list(enumerate(plan))[lane::3] for lane in range(3)]
        memory = chance.choice(["1MiB", "16MiB"])
        with prismaio.connect(memory=memory, depth=4) as prisma, prisma.plan() as announced:
            for lane, part in enumerate(parts):
                announced.announce([wanted for _, wanted in part], lane=lane)
            victim = Crew(prisma, parts[:1], seed="victim", work=hold_all)
            others = Crew(prisma, parts[1:], seed=f"{chance.random()}")
            pid = victim.workers[0].pid
            assert pid is not None
            killer = at(chance.uniform(0, 0.3), pid, signal.SIGKILL)
            heard = [heard for told in others.all_told() for heard in told.heard]
            killer.join()
            victim.workers[0].join()
            heard += by_name(prisma, parts[0], chance)
            check_same(sorted(heard), expected, plan)
            announced.cancel()
            wait_for(lambda: prisma.stats()["used_bytes"] == 0, "the dead worker's room back", 3)
            check_same(by_iteration(prisma, plan[:30], chance), expected[:30], plan)


def hold_all(
    prisma: prismaio.Prisma, part: Sequence[tuple[int, Wanted]], chance: random.Random
) -> list[Heard]:
    """Keeps every sample, and then waits for the end."""
    held = [prisma.take(*wanted) for _, wanted in part]
    for sample in held:
        if sample is not None:
            look_at(sample, chance)
    signal.pause()
    raise AssertionError("nobody killed this worker")


class StoppedEngines(OnSlowStorage):
    """One that stands still costs two seconds, and then is as good as lost; it does no harm."""

    name = "stop-engine"
    cases = 50
    limit_s = 60

    def run(self, case: Case) -> None:
        chance = case.chance()
        plan, expected = self.plan(chance, 200)
        with prismaio.connect(memory="16MiB", depth=4) as prisma, warned_of() as warned:
            stopped, moment_s = engine_of(prisma), chance.uniform(0, 0.1)
            stopper = at(moment_s, stopped, signal.SIGSTOP)
            start = time.monotonic()
            try:
                check_same(by_iteration(prisma, plan, chance), expected, plan)
                took_s = time.monotonic() - start
            finally:
                stopper.join()
                os.kill(stopped, signal.SIGCONT)
            expect(took_s < 8, f"reading took {took_s:.1f} s with an engine that stood still")
            check_same(by_iteration(prisma, plan, chance), expected, plan)
            expect(engine_of(prisma) != 0, "no engine is used any more")
            wait_for(lambda: prisma.stats()["used_bytes"] == 0, "the end of all room taken", 3)
        check_warnings(warned, "engine is gone")
