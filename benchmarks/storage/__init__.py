"""Where the data lies, and in what state: each kind is checked before every run."""

from __future__ import annotations

import importlib
import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from benchmarks.building import RAWREAD

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Storage", "StorageError", "rawread", "storage_of"]


class StorageError(Exception):
    """Storage is not in the state that a row is about."""


class Storage(ABC):
    """Storage in one state, as a context manager: contenders read below `root` while it runs."""

    def __init__(self, source: Path, listed: Path, options: Mapping[str, float]) -> None:
        """Prepares.

        Args:
            source: The data set's folder.
            listed: The list of the files in it, for prisma-rawread.
            options: What the workload says about this storage.
        """
        self.source = source
        self.listed = listed
        self.options = options

    @property
    def root(self) -> Path:
        """Where contenders see the data."""
        return self.source

    def reason_against(self) -> str | None:
        """Why this storage cannot be had here; None where it can."""
        return None

    @abstractmethod
    def prepare(self) -> dict[str, float]:
        """Puts storage into its state before a run; what was found when that was checked.

        Raises:
            StorageError: If it is not to be had.
        """

    def command(self, command: Sequence[str]) -> list[str]:
        """The command that runs another one on this storage."""
        return list(command)

    def counted(self) -> dict[str, float]:
        """What storage itself counted since `prepare`."""
        return {}

    def resident_share(self) -> float:
        """The share of all pages of the data that the page cache holds."""
        found = rawread("resident", 2, self.listed)
        return float(found["resident"] / found["pages"]) if found["pages"] else 1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return


def storage_of(name: str) -> type[Storage]:
    """The storage of that name: the class `Kind` of its module."""
    found: type[Storage] = importlib.import_module(f"benchmarks.storage.{name}").Kind
    return found


def rawread(task: str, threads: int, listed: Path) -> dict[str, Any]:
    """Runs prisma-rawread and gives its answer."""
    command = [str(RAWREAD), task, str(threads), str(listed)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise StorageError(f"{' '.join(command)}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer
