"""One run of the demo: training in a fresh process, followed step by step."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from prismaio.demo.processes import Watch
from prismaio.demo.storage import Reads, Storage
from prismaio.errors import PrismaError

__all__ = ["Progress", "Run", "Task", "run"]

Progress = Callable[["Run"], None]


class Task(NamedTuple):
    """What one run is to do; both runs of a demo differ in `through_prisma` alone."""

    folder: str
    through_prisma: bool
    workers: int
    batch: int
    epochs: int
    seed: int
    memory: str  # for PRISMA's buffer
    limit: int  # images used; 0 for all


@dataclass
class Run:
    """What was seen of one run; grows while it runs."""

    steps: int = 0  # there will be
    samples: int = 0  # trained on
    waits_s: list[float] = field(default_factory=list)  # of each step, for its batch
    compute_s: float = 0.0
    loss: float = 0.0
    time_s: float = 0.0
    digest: str = ""
    peak_bytes: int = 0
    reads: Reads = field(default_factory=lambda: Reads(0.0, 0))

    @property
    def wait_s(self) -> float:
        """All time in which the accelerator, here a core, had no batch to work on."""
        return sum(self.waits_s)

    @property
    def utilisation(self) -> float:
        """The share of the time in which it computed."""
        return self.compute_s / self.time_s

    @property
    def samples_per_s(self) -> float:
        """How fast it trained."""
        return self.samples / self.time_s


def run(task: Task, storage: Storage, progress: Progress) -> Run:
    """Trains in a process of its own and tells after each step how far it is.

    Raises:
        PrismaError: If training failed; what it said is on standard error.
    """
    storage.forget()
    seen = Run()
    command = [sys.executable, "-m", "prismaio.demo.training", json.dumps(task._asdict())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            with Watch(process.pid) as watch:
                for event in _events(process):
                    _take_in(event, seen, watch)
                    if event["what"] == "step":
                        progress(seen)
        except BaseException:
            process.kill()
            raise
    seen.peak_bytes = watch.peak_bytes
    seen.reads = storage.reads() or Reads.seen(watch.waiting)
    if process.returncode != 0 or not seen.digest:
        raise PrismaError(f"training ended early, with status {process.returncode}")
    return seen


def _events(process: subprocess.Popen[str]) -> Iterator[dict[str, float | str]]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            yield json.loads(line)


def _take_in(event: dict[str, float | str], seen: Run, watch: Watch) -> None:
    what = event["what"]
    if what == "start":
        seen.steps = int(event["steps"])
    elif what == "engine":
        watch.add(int(event["pid"]))
    elif what == "step":
        seen.samples += int(event["samples"])
        seen.waits_s.append(float(event["wait_s"]))
        seen.compute_s += float(event["compute_s"])
        seen.loss = float(event["loss"])
    elif what == "end":
        seen.time_s, seen.digest = float(event["time_s"]), str(event["digest"])
