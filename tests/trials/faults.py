"""Storage that fails in every way: right bytes or an OSError, never anything else."""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import threading
from contextlib import ExitStack
from typing import NamedTuple

import prismaio
from prismaio.testing import SlowStorage

from trials.consumers import Heard, by_iteration, by_name, check_warnings, warned_of
from trials.data import Outcome, Wanted, make_files, plainly
from trials.suite import Case, Suite, expect, wait_for

__all__ = ["Faults"]

TRANSIENT = [errno.EINTR, errno.EAGAIN, errno.ETIMEDOUT]
PERMANENT = [errno.EIO, errno.EACCES, errno.ENOENT, errno.ENOSPC]


class Ill(NamedTuple):
    """What is wrong with a file, and what may come of it: the right bytes, or these errors."""

    right: bool
    errors: tuple[int, ...] = ()


class Faults(Suite):
    """2,000 plans over files of which half fail. Some lose their engine on top."""

    name = "faults"
    cases = 2000
    limit_s = 30
    batch = 50
    on_slow_storage = True

    def prepare(self) -> None:
        chance = random.Random(f"files/{self.seed}")
        source = self.folder / "source"
        source.mkdir()
        sizes = [1, 4096, 4097, 131_072, 300_000, 700_000, 1_100_000]
        sizes += [chance.randrange(1, 60_000) for _ in range(33)]
        self.home = make_files(source, chance, sizes)
        self.right = {name: plainly(Wanted(self.home.path(name))) for name in self.home.files}
        self.slow = self.stack.enter_context(SlowStorage(source, attr_timeout_s=0))
        self.data = self.home.below(self.slow.path)
        self.prisma = self.stack.enter_context(prismaio.connect(memory="2MiB", depth=4))

    def run(self, case: Case) -> None:
        chance = case.chance()
        names = chance.sample(self.home.files, 12)
        with ExitStack() as faults, warned_of() as warned:
            ills = {name: self._make_ill(name, chance, faults) for name in names}
            plan = [Wanted(self.data.path(name)) for name in names]
            killer = self._maybe_kill(chance)
            heard = self._read(plan, chance)
            if killer is not None:
                killer.join()
                self._notice_the_end()
        expect(len(heard) == len(plan), f"{len(heard)} samples of {len(plan)}")
        for name, (position, outcome) in zip(names, heard, strict=True):
            check(name, position, outcome, self.right[name], ills[name])
        check_warnings(warned, *(["engine is gone"] if killer is not None else []))

    def _make_ill(self, name: bytes, chance: random.Random, faults: ExitStack) -> Ill:
        """Lets something go wrong with a file, or nothing."""
        glob = re.sub(rb"([*?\[\\])", rb"\\\1", name)
        place = chance.choice(["open", "read"])
        size = os.stat(self.home.path(name)).st_size  # noqa: PTH116 - any bytes
        kind = chance.randrange(8)
        if kind == 0:
            faults.enter_context(self.slow.fault(glob, at="read", short_bytes=4096))
        elif kind == 1:
            faults.enter_context(self.slow.fault(glob, at="read", end_at=chance.randrange(size)))
            return Ill(right=False, errors=(errno.ESTALE,))
        elif kind == 2:
            error = chance.choice(PERMANENT)
            faults.enter_context(self.slow.fault(glob, at=place, error=error))  # type: ignore[arg-type]
            return Ill(right=False, errors=(error,))
        elif kind == 3:
            error, times = chance.choice(TRANSIENT), chance.randrange(1, 3)
            faults.enter_context(self.slow.fault(glob, at=place, error=error, times=times))  # type: ignore[arg-type]
        elif kind == 4:
            faults.enter_context(self.slow.fault(glob, at=place, delay_s=0.02))  # type: ignore[arg-type]
        return Ill(right=True)

    def _maybe_kill(self, chance: random.Random) -> threading.Timer | None:
        if chance.random() > 0.05:
            return None
        pid = self.prisma.stats()["engine_pid"]
        if pid == 0:
            return None
        killer = threading.Timer(chance.uniform(0, 0.03), os.kill, (pid, signal.SIGKILL))
        killer.start()
        return killer

    def _notice_the_end(self) -> None:
        """Now, so that no later case is warned of it; the next one has another engine."""
        client = self.prisma._connection._client
        if client is not None:
            wait_for(lambda: not client.engine_lives, "the engine's end", 5)
        self.prisma.iterate([])

    def _read(self, plan: list[Wanted], chance: random.Random) -> list[Heard]:
        if chance.random() < 0.7:
            return by_iteration(self.prisma, plan, chance)
        with self.prisma.plan() as announced:
            announced.announce(plan)
            return by_name(self.prisma, list(enumerate(plan)), chance, as_files=False)


def check(name: bytes, position: int, outcome: Outcome, right: Outcome, ill: Ill) -> None:
    what = f"position {position}, {name!r}, {ill}: {outcome} came"
    expect(outcome in ill.errors if isinstance(outcome, int) else ill.right, what)
    expect(isinstance(outcome, int) or outcome == right, f"wrong bytes: {what}")
