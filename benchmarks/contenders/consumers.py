"""Many consumer processes of one session: what all of them get together.

Their plan is announced lane by lane, and each takes its own files by path, as workers do.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from prismaio import _core
from prismaio.launch import start_engine
from prismaio.sizes import parse_size

from benchmarks.contenders import Contender, Figures, touch_function

_PLAN = 1
_DEPTH = 16


class Reader(Contender):
    """Time begins when the plan is announced and ends with the last consumer."""

    def samples(self, paths: list[str]) -> Iterator[tuple[bytes]]:
        raise NotImplementedError("many consumers have no common order")

    def measure(self, paths: list[str]) -> Figures:
        count = int(self.job.argument)
        lanes = [paths[lane::count] for lane in range(count)]
        consumers = [_Consumer(lane) for lane in lanes]  # forked while there is nothing to inherit
        memory = parse_size(self.job.memory)
        depth = self.job.depth or _DEPTH
        address, _ = start_engine(memory_bytes=memory, buffer_bytes=memory, depth=depth)
        client = _core.Client(address)
        began = time.perf_counter()
        for lane, files in enumerate(lanes):
            ranges = [(path.encode(), 0, _core.TO_THE_END) for path in files]
            client.announce(_PLAN, lane, 0, ranges, True)
        client.settle()
        for consumer in consumers:
            consumer.begin(address, client.session)
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
    """A process that takes its files once it is told where."""

    def __init__(self, paths: list[str]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_consume, args=(theirs, paths), daemon=True)
        self._process.start()

    def begin(self, address: str, session: int) -> None:
        self._pipe.send((address, session))

    def end(self) -> dict[str, int]:
        found: dict[str, int] = self._pipe.recv()
        self._process.join()
        return found


def _consume(pipe: Connection, paths: list[str]) -> None:
    touch = touch_function()
    address, session = pipe.recv()
    client = _core.Client(address, session)
    total = 0
    for path in paths:
        total += touch(client.take_path(path.encode(), 0, _core.TO_THE_END))
    pipe.send({"bytes": total, "direct": client.counters()["direct_reads"]})
