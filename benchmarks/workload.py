"""Workloads: what is read, from what storage, by whom, and which bars it should meet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from benchmarks.dataset import DataSet

WORKLOADS = Path(__file__).with_name("workloads")

_QUICK_FILES = 48


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A figure of one contender that should stay on one side of a number."""

    figure: str
    contender: str = "prisma"
    against: str = ""  # another contender of the same round, or "limit": the best of its kind
    how: Literal["ratio", "difference", "value"] = "ratio"
    at_most: float | None = None
    at_least: float | None = None
    every: bool = False  # each value must meet it, not the median

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(f"{self.figure}: a bar is either at_most or at_least")
        if (self.how == "value") != (not self.against):
            raise ValueError(f"{self.figure}: a {self.how} has something to be against, or not")

    def value(self, mine: float, other: float) -> float:
        """What is held against the number."""
        if self.how == "value":
            return mine
        return mine - other if self.how == "difference" else mine / other


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One row."""

    name: str
    title: str
    storage: str  # a module of benchmarks/storage
    data: DataSet
    contenders: tuple[str, ...]  # "name" or "name:argument"
    bars: tuple[Bar, ...]
    limit_threads: tuple[int, ...] = ()  # empty: no limit is measured
    memory: str = "256MiB"  # PRISMA's budget
    depth: int | None = None  # PRISMA's; None: its default
    stream: bool = False  # samples are consumed piece by piece
    passes: tuple[str, ...] = ("time",)  # and "memory"
    check_bytes: bool = True
    storage_options: dict[str, float] = field(default_factory=dict)

    @property
    def programs(self) -> tuple[str, ...]:
        """What has to be built for it."""
        takes = any(name.startswith("takes:") for name in self.contenders)
        return ("prisma-rawread", "prisma_touch", *(["prisma-takes"] if takes else []))

    def quick(self) -> Workload:
        """A smoke test of the same row: little data, few threads."""
        files = min(_QUICK_FILES, self.data.files)
        threads = self.limit_threads[:1] + self.limit_threads[-1:]
        return replace(
            self, data=self.data.smaller(files), limit_threads=tuple(sorted(set(threads)))
        )


def load(path: Path) -> Workload:
    """A workload from its file. Needs Python 3.11."""
    import tomllib  # type: ignore[import-not-found]

    table: dict[str, Any] = tomllib.loads(path.read_text())
    table["data"] = DataSet(**table["data"])
    table["bars"] = tuple(Bar(**bar) for bar in table["bars"])
    for name in ("contenders", "limit_threads", "passes"):
        if name in table:
            table[name] = tuple(table[name])
    return Workload(name=path.stem, **table)


def rows() -> list[str]:
    """The names of all rows."""
    return sorted(path.stem for path in WORKLOADS.glob("*.toml"))


def row(name: str) -> Workload:
    """The workload of a row.

    Raises:
        ValueError: If there is none of that name.
    """
    if name not in rows():
        raise ValueError(f"no row is called {name!r}; there are {', '.join(rows())}")
    return load(WORKLOADS / f"{name}.toml")
