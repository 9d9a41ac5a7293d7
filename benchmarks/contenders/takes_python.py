"""Taking ready samples in Python: each step of `iterate`, without looking at the bytes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import islice
from statistics import median

import prismaio

from benchmarks import contenders, traced
from benchmarks.contenders import Contender, Figures
from benchmarks.contenders.takes import DEPTH, FULL, with_hits_only

_BATCH = 64
_AHEAD = 4 * _BATCH  # that are ready, before some are taken
_STEP = 256  # samples that one step of `iterate` announces
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
        memory = FULL if full else self.job.memory
        with prismaio.connect(
            memory=memory, depth=DEPTH, lookahead=len(paths) + 2 * _STEP
        ) as prisma:
            samples = prisma.iterate(paths)
            # After so many steps, of which the first are shorter, all are announced.
            unmeasured = len(list(islice(samples, len(paths) // _STEP + 8)))
            _wait_until_ready(prisma, _AHEAD if full else len(paths))
            before = prisma.stats()["hits"]
            traced.mark("begin")
            ns = [*_batches(samples, range(unmeasured, len(paths) - _BATCH, _BATCH), prisma)]
            traced.mark("end")
            hits = prisma.stats()["hits"] - before
            samples.close()
        return {"ns_per_hit": median(ns), "takes": len(ns) * _BATCH, "hits": hits}


def _batches(samples: Iterator[object], starts: range, prisma: prismaio.Prisma) -> Iterator[float]:
    """The mean time of one step, batch by batch."""
    for start in starts:
        _wait_until_ready(prisma, min(start + _AHEAD, starts.stop))
        began = time.perf_counter_ns()
        for _sample in islice(samples, _BATCH):
            pass
        yield (time.perf_counter_ns() - began) / _BATCH


def _wait_until_ready(prisma: prismaio.Prisma, samples: int) -> None:
    """Reads are done in the order of takes: the next ones are ready once enough were done."""
    deadline = time.monotonic() + _PATIENCE_S
    while (stats := prisma.stats())["reads"] < samples or stats["reads_in_flight"]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the engine did not get ready: {stats}")
        time.sleep(0.0002)
