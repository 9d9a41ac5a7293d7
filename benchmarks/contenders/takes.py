"""Taking ready samples in C++: prisma-takes beside an engine. It measures no time of reading."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

from prismaio.launch import start_engine
from prismaio.sizes import parse_size

from benchmarks import traced
from benchmarks.building import TAKES
from benchmarks.contenders import Contender, Figures

_FULL_BYTES = 16 << 20  # less than the data: the buffer is always full
_DEPTH = 16


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
        memory = _FULL_BYTES if self.job.argument == "full" else parse_size(self.job.memory)
        address, _ = start_engine(memory_bytes=memory, buffer_bytes=memory, depth=_DEPTH)
        return [str(TAKES), address, self.job.listed, self.job.argument]


def with_hits_only(figures: Figures) -> Figures:
    """The same figures, when next to all takes were hits: the others would tell something else."""
    if figures["hits"] < 0.99 * figures["takes"]:
        raise RuntimeError(f"not a measure of hits: {figures}")
    return figures
