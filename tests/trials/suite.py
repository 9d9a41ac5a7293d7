"""A suite tries one promise in many cases; a case is all that its seed and number say."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar, NamedTuple

from prismaio.testing import SlowStorage

__all__ = ["Case", "Suite", "expect", "wait_for"]


class Case(NamedTuple):
    """One case. `share` is how much of it there is time for, where it is one long run: 1 is all."""

    suite: str
    seed: int
    number: int
    share: float = 1.0

    def chance(self) -> random.Random:
        """Its own source of all that is random."""
        return random.Random(f"{self.suite}/{self.seed}/{self.number}")


class Suite(ABC):
    """Runs in a process of its own, for one batch of cases. A case fails by what it raises."""

    name: ClassVar[str]
    cases: ClassVar[int]
    limit_s: ClassVar[float]  # of each case
    batch: ClassVar[int] = 1  # cases that share a process, and what `prepare` makes
    on_slow_storage: ClassVar[bool] = False  # whether there is no trying without it

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder  # empty, and removed afterwards
        self.seed = seed
        self.stack = ExitStack()  # what is to be closed after the batch

    @classmethod
    def reason_against(cls) -> str | None:
        """Why it cannot be tried here; None where it can."""
        return SlowStorage.available() if cls.on_slow_storage else None

    def prepare(self) -> None:  # noqa: B027 - there may be nothing to prepare
        """What the cases of a batch share. Depends on the seed only."""

    @abstractmethod
    def run(self, case: Case) -> None:
        """Tries one case."""


def expect(condition: object, what: str) -> None:
    """An assertion that also holds under -O, with words of its own."""
    if not condition:
        raise AssertionError(what)


def wait_for(condition: Callable[[], object], what: str, within_s: float) -> None:
    """Waits for what another process does in its own time."""
    deadline = time.monotonic() + within_s
    while not condition():
        expect(time.monotonic() < deadline, f"{what}: not within {within_s} s")
        time.sleep(0.005)
