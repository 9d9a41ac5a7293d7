"""Taking ready samples in C++: prisma-takes beside an engine. It measures no time of reading."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

from prismaio.launch import find_or_start
from prismaio.settings import resolve

from benchmarks import traced
from benchmarks.building import TAKES
from benchmarks.contenders import Contender, Figures

FULL = "16MiB"  # less than the data: the buffer is always full
DEPTH = 16


class Reader(Contender):
    """With room for everything ("room"), or with a buffer that is full all the time ("full")."""

    def samples(self, paths: list[str]) -> Iterator[tuple[bytes]]:
        raise NotImplementedError("these takes look at no bytes")

    def measure(self, paths: list[str]) -> Figures:
        done = subprocess.run(self._command(), check=True, text=True, stdout=subprocess.PIPE)
        figures = with_hits_only(json.loads(done.stdout))
        if traced.available() is None:
            said, calls = traced.run(self._command(), dict(os.environ))
            figures["calls_per_hit"] = calls.total() / with_hits_only(json.loads(said))["takes"]
        return figures

    def _command(self) -> list[str]:
        """Each run has an engine of its own, which ends with it."""
        memory = FULL if self.job.argument == "full" else self.job.memory
        engine = find_or_start(resolve(memory=memory, depth=DEPTH), private=True)
        return [str(TAKES), engine.address, self.job.listed, self.job.argument]


def with_hits_only(figures: Figures) -> Figures:
    """The same figures, when next to all takes were hits: the others would tell something else."""
    if figures["hits"] < 0.99 * figures["takes"]:
        raise RuntimeError(f"not a measure of hits: {figures}")
    return figures
