"""Leaving a loop early stops what was outstanding and frees its room, without anyone's close."""

from __future__ import annotations

import random
import time

import prismaio
from prismaio.testing import SlowStorage

from trials.data import Wanted, digest, make_files, plainly
from trials.suite import Case, Suite, expect, wait_for

__all__ = ["EarlyEnds"]

DEPTH = 8


class EarlyEnds(Suite):
    """Three samples of 5,000, and out."""

    name = "early-end"
    cases = 500
    limit_s = 15
    batch = 50
    on_slow_storage = True

    def prepare(self) -> None:
        chance = random.Random(f"files/{self.seed}")
        source = self.folder / "source"
        source.mkdir()
        self.home = make_files(source, chance, [chance.randrange(30_000) for _ in range(100)])
        slow = SlowStorage(source, open_delay_s=0.002, jitter_share=1, seed=self.seed)
        self.slow = self.stack.enter_context(slow)
        self.data = self.home.below(self.slow.path)
        self.prisma = self.stack.enter_context(prismaio.connect(memory="4MiB", depth=DEPTH))

    def run(self, case: Case) -> None:
        chance = case.chance()
        names = [chance.choice(self.data.files) for _ in range(5000)]
        plan = [Wanted(self.data.path(name)) for name in names]
        way = chance.choice(["break", "raise", "close"])
        self._leave(names, plan, way, chance.randrange(4))
        stats = self.prisma.stats
        wait_for(lambda: stats()["used_bytes"] == 0, "the end of all room taken", 1)
        self.slow.reset_counters()  # from here on the engine has heard of the end
        time.sleep(1.0 if chance.random() < 0.1 else 0.1)
        opens = self.slow.counters()["opens"]
        expect(opens <= DEPTH, f"{opens:.0f} files opened after the end")  # those in flight

    def _leave(self, names: list[bytes], plan: list[Wanted], way: str, after: int) -> None:
        """Each iterator is right from its first sample, whatever the one before left behind."""
        samples = self.prisma.iterate(plan)
        try:
            for position, sample in enumerate(samples):
                right = plainly(Wanted(self.home.path(names[position])))
                expect(sample.position == position, f"position {sample.position} came first")
                expect(digest(sample.view()) == right, f"wrong bytes at {position}")
                if position == after and way == "raise":
                    raise LookupError
                if position == after:
                    break
        except LookupError:
            pass
        if way == "close":
            samples.close()
