"""PRISMA: connect, then iterate. Its time includes the engine's start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import prismaio

from benchmarks.contenders import Buffer, Contender, Figures

_COUNTED = ("hits", "lates", "misses", "rereads", "private_copies", "reads_in_flight_max")


class Reader(Contender):
    """One plain consumer. The argument is the source that the engine reads from."""

    def start(self) -> None:
        source = self.job.argument or None
        self._prisma = prismaio.connect(memory=self.job.memory, depth=self.job.depth, source=source)

    def samples(self, paths: list[str]) -> Iterator[Iterable[Buffer]]:
        sample: Any
        for sample in self._prisma.iterate(paths):
            yield sample.chunks() if self.job.stream else (sample,)

    def counted(self) -> Figures:
        stats = self._prisma.stats()
        return {name: stats[name] for name in _COUNTED if name in stats}

    def close(self) -> None:
        self._prisma.close()
