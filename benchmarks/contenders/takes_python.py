"""Taking ready samples in Python: each step of `iterate`, without looking at the bytes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from statistics import median

import prismaio

from benchmarks import contenders, traced
from benchmarks.contenders import Contender, Figures
from benchmarks.contenders.takes import _DEPTH, _FULL_BYTES, with_hits_only

_BATCH = 64
_ANNOUNCED_AT_ONCE = 256
_TRACED = "PRISMAIO_BENCH_RUN"  # set in the run that is traced
_PATIENCE_S = 60.0


class Reader(Contender):
    """With room for everything ("room"), or with a buffer that is full all the time ("full")."""

    def samples(self, paths: list[str]) -> Iterator[tuple[bytes]]:
        raise NotImplementedError("these takes look at no bytes")

    def measure(self, paths: list[str]) -> Figures:
        figures = with_hits_only(self._takes(paths))
        if traced.available() is None and _TRACED not in os.environ:
            said, calls = traced.run(contenders.command(self.job), os.environ | {_TRACED: "traced"})
            figures["calls_per_hit"] = calls.total() / json.loads(said)["takes"]
        return figures

    def _takes(self, paths: list[str]) -> Figures:
        full = self.job.argument == "full"
        memory = _FULL_BYTES if full else self.job.memory
        with prismaio.connect(memory=memory, depth=_DEPTH, lookahead=len(paths) + 1) as prisma:
            samples = prisma.iterate(paths)
            # A step announces so many: after these, all are announced.
            unmeasured = len(list(islice(samples, len(paths) // _ANNOUNCED_AT_ONCE + 2)))
            least = _BATCH if full else len(paths)
            _wait_until(lambda: _quiet(prisma) and prisma.stats()["reads"] >= least)
            before = prisma.stats()["hits"]
            traced.mark("begin")
            ns = [*_batches(samples, (len(paths) - unmeasured) // _BATCH, prisma if full else None)]
            traced.mark("end")
            hits = prisma.stats()["hits"] - before
            samples.close()  # type: ignore[attr-defined]
        return {"ns_per_hit": median(ns), "takes": len(ns) * _BATCH, "hits": hits}


def _batches(
    samples: Iterator[object], count: int, paced_by: prismaio.Prisma | None
) -> Iterator[float]:
    """The mean time of one step, batch by batch."""
    for _ in range(count):
        if paced_by is not None:
            _wait_until(lambda: _quiet(paced_by))
        start = time.perf_counter_ns()
        for _sample in islice(samples, _BATCH):
            pass
        yield (time.perf_counter_ns() - start) / _BATCH


def _quiet(prisma: prismaio.Prisma) -> bool:
    return prisma.stats()["reads_in_flight"] == 0


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("the engine did not get ready")
        time.sleep(0.0002)
