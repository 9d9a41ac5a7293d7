"""One row: contenders interleaved on the same storage, round after round, until bars resolve."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import running, verdict
from benchmarks.contenders import Figures
from benchmarks.dataset import provide
from benchmarks.job import Job, write_list
from benchmarks.machine import wait_until_quiet
from benchmarks.storage import Storage, StorageError, storage_of
from benchmarks.workload import Bar, Workload

Say = Callable[[str], None]
_BEST_LIMITS = 2  # of the limit's thread counts, how many run in every round


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How often everything runs."""

    least: int = 5
    most: int = 30
    scouting: int = 3  # runs of every thread count of the limit, to find the best ones
    seed: int = 1
    quiet_s: float = 0.0  # how long to wait before each timed run until the machine is quiet


@dataclass
class Outcome:
    """What a row found. Figures are kept per contender and round."""

    workload: Workload
    figures: dict[str, dict[int, Figures]] = field(default_factory=dict)
    memory: dict[str, list[Figures]] = field(default_factory=dict)
    scouted: dict[str, list[float]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)  # contender: why
    same_bytes: dict[str, bool] = field(default_factory=dict)

    def limit(self) -> str | None:
        """The limit's configuration with the best median."""
        times = {
            name: median(one["wall_s"] for one in rounds.values())
            for name, rounds in self.figures.items()
            if name.startswith("limit:")
        }
        return min(times, key=lambda name: times[name]) if times else None

    def values(self, bar: Bar) -> list[float]:
        """What the bar is held against, one per round (a ratio is of one and the same round)."""
        if bar.how == "value":
            found = [*self.figures.get(bar.contender, {}).values()]
            found += self.memory.get(bar.contender, [])
            return [one[bar.figure] for one in found if bar.figure in one]
        other = self.limit() if bar.against == "limit" else bar.against
        mine, others = self.figures.get(bar.contender, {}), self.figures.get(other or "", {})
        return [
            bar.value(mine[number][bar.figure], others[number][bar.figure])
            for number in sorted(mine.keys() & others.keys())
        ]

    def answer(self, bar: Bar) -> verdict.Answer | None:
        """Whether the bar is met; None where nothing was measured."""
        values = self.values(bar)
        if not values or self.same_bytes.get(bar.contender) is False:
            return None
        limits = {"at_most": bar.at_most, "at_least": bar.at_least}
        if bar.every:
            return verdict.judge_every(values, **limits)
        return verdict.judge(verdict.interval_of_median(values), **limits)


class Race:
    """Runs one row."""

    def __init__(self, workload: Workload, rounds: Rounds, say: Say) -> None:
        self._workload = workload
        self._rounds = rounds
        self._say = say
        self._draw = random.Random(rounds.seed)
        self._outcome = Outcome(workload)

    def run(self) -> Outcome:
        """The whole row.

        Raises:
            StorageError: If the storage that the row is about is not to be had.
        """
        self._say(f"data: {self._workload.data.files} files")
        source = provide(self._workload.data)
        with TemporaryDirectory(prefix="prismaio-bench-") as folder:
            self._here = Path(folder)
            self._list(source, "data")
            with self._storage(source) as storage:
                self._check_bytes(source, storage)
                self._scout(storage)
                self._race(storage)
        return self._outcome

    @contextmanager
    def _storage(self, source: Path) -> Iterator[Storage]:
        options = self._workload.storage_options
        made = storage_of(self._workload.storage)(source, self._here / "data", options)
        reason = made.reason_against()
        if reason is not None:
            raise StorageError(f"{self._workload.storage} storage is not to be had: {reason}")
        with made as storage:
            yield storage

    def _list(self, root: Path, name: str, order: random.Random | None = None) -> str:
        paths = [str(root / path) for path in self._workload.data.names()]
        if order is not None:
            order.shuffle(paths)
        write_list(self._here / name, paths)
        return str(self._here / name)

    def _job(self, contender: str, listed: str) -> Job:
        wanted = self._workload
        return Job(
            contender=contender,
            listed=listed,
            memory=wanted.memory,
            depth=wanted.depth,
            stream=wanted.stream,
        )

    def _check_bytes(self, source: Path, storage: Storage) -> None:
        """In a pass of its own, that everybody delivers the same bytes in the same order."""
        if not self._workload.check_bytes:
            return
        listed = self._list(source, "order", random.Random(self._rounds.seed))
        expected = running.digest(self._job("plain", listed), storage)
        for contender in self._workload.contenders:
            job = self._job(contender, listed)
            self._attempt(contender, partial(self._compare, job, storage, expected))

    def _compare(self, job: Job, storage: Storage, expected: str) -> None:
        same = running.digest(job, storage) == expected
        self._outcome.same_bytes[job.contender] = same
        self._say(f"{job.contender}: {'the same bytes' if same else 'OTHER BYTES'}")

    def _scout(self, storage: Storage) -> None:
        """Finds the thread counts with which the limit is best."""
        names = [f"limit:{threads}" for threads in self._workload.limit_threads]
        times: dict[str, list[float]] = {name: [] for name in names}
        for number in range(self._rounds.scouting if len(names) > _BEST_LIMITS else 0):
            listed = self._list(storage.root, "order", random.Random(f"scout {number}"))
            for name in self._shuffled(names):
                figures = self._timed(self._job(name, listed), storage)
                times[name].append(figures["wall_s"])
                self._say(f"scouting: {name} {figures['wall_s']:.3f} s")
        self._outcome.scouted = {name: values for name, values in times.items() if values}
        if self._outcome.scouted:
            names = sorted(names, key=lambda name: median(times[name]))[:_BEST_LIMITS]
        self._limits = names

    def _race(self, storage: Storage) -> None:
        for number in range(self._rounds.most):
            enough = number >= self._rounds.least
            if enough and self._resolved():
                return
            listed = self._list(storage.root, "order", random.Random(f"round {number}"))
            for contender in self._shuffled(self._field(only_needed=enough)):
                job = self._job(contender, listed)
                self._attempt(contender, partial(self._pass, number, job, storage))

    def _pass(self, number: int, job: Job, storage: Storage) -> None:
        if "time" in self._workload.passes:
            figures = self._timed(job, storage)
            self._outcome.figures.setdefault(job.contender, {})[number] = figures
            if "wall_s" in figures:
                self._say(f"round {number + 1}: {job.contender} {figures['wall_s']:.3f} s")
        if "memory" in self._workload.passes:
            memory = running.remembered(job, storage)
            self._outcome.memory.setdefault(job.contender, []).append(memory)
            self._say(f"round {number + 1}: {job.contender} {memory['peak_mib']:.0f} MiB")

    def _timed(self, job: Job, storage: Storage) -> Figures:
        wait_until_quiet(self._rounds.quiet_s)
        return running.timed(job, storage)

    def _field(self, *, only_needed: bool) -> list[str]:
        """Who runs in a round; later on, only those that an open bar is about."""
        needed = {name for bar in self._workload.bars for name in (bar.contender, bar.against)}
        names = [
            name
            for name in self._workload.contenders
            if name not in self._outcome.absent and (not only_needed or name in needed)
        ]
        return [*self._limits, *names]

    def _resolved(self) -> bool:
        answers = [self._outcome.answer(bar) for bar in self._workload.bars]
        return "not resolved" not in answers

    def _shuffled(self, names: list[str]) -> list[str]:
        return self._draw.sample(names, k=len(names))

    def _attempt(self, contender: str, work: Callable[[], None]) -> None:
        """A contender that cannot run, or fails, is left out from then on, with the reason."""
        try:
            work()
        except (running.SkippedError, running.FailedError) as reason:
            self._outcome.absent[contender] = str(reason)
            self._say(f"{contender}: {reason}")
