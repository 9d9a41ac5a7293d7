"""Many consumer processes of one session: what all of them get together.

Their plan is announced lane by lane, and each takes its own files by path, as workers do.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import prismaio

from benchmarks.contenders import Contender, Figures, touch_function


class Reader(Contender):
    """Time begins when the plan is announced and ends with the last consumer."""

    def samples(self, paths: list[str]) -> Iterator[tuple[bytes]]:
        raise NotImplementedError("many consumers have no common order")

    def measure(self, paths: list[str]) -> Figures:
        count = int(self.job.argument)
        lanes = [paths[lane::count] for lane in range(count)]
        with prismaio.connect(memory=self.job.memory, depth=self.job.depth) as prisma:
            consumers = [_Consumer(prisma, lane) for lane in lanes]
            began = time.perf_counter()
            with prisma.plan() as plan:
                for lane, files in enumerate(lanes):
                    plan.announce(files, lane=lane)
                plan.settle()
                for consumer in consumers:
                    consumer.begin()
                taken = [consumer.end() for consumer in consumers]
            wall_s = time.perf_counter() - began
        return {
            "wall_s": wall_s,
            "samples": len(paths),
            "samples_per_s": len(paths) / wall_s,
            "bytes": sum(one["bytes"] for one in taken),
            "direct": sum(one["direct"] for one in taken),
        }


class _Consumer:
    """A forked process that takes its files once it is told to."""

    def __init__(self, prisma: prismaio.Prisma, paths: list[str]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_consume, args=(theirs, prisma, paths), daemon=True)
        self._process.start()

    def begin(self) -> None:
        self._pipe.send("begin")

    def end(self) -> dict[str, int]:
        found: dict[str, int] = self._pipe.recv()
        self._process.join()
        return found


def _consume(pipe: Connection, prisma: prismaio.Prisma, paths: list[str]) -> None:
    touch = touch_function()
    pipe.recv()
    total = sum(touch(prisma.read(path)) for path in paths)
    pipe.send({"bytes": total, "direct": prisma.stats()["direct_reads"]})
