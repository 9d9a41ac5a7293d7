"""Ways to read the same files in the same order. Each runs in a fresh process of its own."""

from __future__ import annotations

import importlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator

from benchmarks.building import FOLDER, RAWREAD
from benchmarks.job import Job

__all__ = ["Contender", "UnavailableError", "command", "contender_of", "touch_function"]

Figures = dict[str, float]
Buffer = object  # whatever has the buffer protocol


class UnavailableError(Exception):
    """This contender cannot run here, and the message says why."""


class Contender(ABC):
    """One way to read. What its class imports is not part of its time; what `start` does is."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def start(self) -> None:
        """What has to be up before the first sample can be asked for."""
        return

    @abstractmethod
    def samples(self, paths: list[str]) -> Iterator[Iterable[Buffer]]:
        """Each sample in order, as its pieces in order."""

    def counted(self) -> Figures:
        """Figures of its own, once all samples were read."""
        return {}

    def close(self) -> None:
        """Lets go of everything."""
        return

    def measure(self, paths: list[str]) -> Figures:
        """Reads everything once, touching one byte of every page."""
        touch = touch_function()
        clock = time.perf_counter
        began = clock()
        self.start()
        started = clock()
        total_bytes, samples, first = 0, 0, None
        for sample in self.samples(paths):
            for piece in sample:
                total_bytes += touch(piece)
            samples += 1
            if first is None:
                first = clock()
        ended = clock()
        return {
            "wall_s": ended - began,
            "start_s": started - began,
            "started_wall_s": ended - started,
            "first_s": (first or ended) - began,
            "bytes": total_bytes,
            "samples": samples,
            "samples_per_s": samples / (ended - began),
        }


def touch_function() -> Callable[[Buffer], int]:
    """`touch(buffer) -> int`: reads one byte of every page and gives the size."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    touch: Callable[[Buffer], int] = importlib.import_module("prisma_touch").touch
    return touch


def contender_of(job: Job) -> Contender:
    """The contender of a job: the class `Reader` of its module.

    Raises:
        UnavailableError: If what it is made of is not installed.
    """
    made = importlib.import_module(f"benchmarks.contenders.{job.kind}").Reader(job)
    assert isinstance(made, Contender)
    return made


def command(job: Job) -> list[str]:
    """What to run for a job. The limit is a program of its own."""
    if job.kind == "limit":
        return [str(RAWREAD), "read", job.argument, job.listed]
    return [sys.executable, "-m", "benchmarks.run_one", job.to_json()]
