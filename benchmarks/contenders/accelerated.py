"""PyTorch's DataLoader as in torch.py, through `prismaio.torch.accelerate`."""

from __future__ import annotations

from typing import Any

import prismaio

from benchmarks.contenders import Figures
from benchmarks.contenders.torch import Reader as Plain
from benchmarks.job import Job


class Reader(Plain):
    """With as many workers as its argument says."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        from prismaio.torch import accelerate  # which imports torch, found above

        self._accelerate = accelerate

    def start(self) -> None:
        self._prisma = prismaio.connect(memory=self.job.memory, depth=self.job.depth)

    def loader(self, paths: list[str]) -> Any:
        plain = super().loader(paths)
        return self._accelerate(plain, paths=paths.__getitem__, prisma=self._prisma)

    def counted(self) -> Figures:
        stats = self._prisma.stats()
        return {name: stats[name] for name in ("reads", "reads_in_flight_max")}

    def close(self) -> None:
        self._prisma.close()
