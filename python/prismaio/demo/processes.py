"""What a run's processes take: sampled from /proc while they run."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MemoryWatch", "family"]


def family(pids: Iterable[int]) -> list[int]:
    """These processes and all that descend from them."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):  # it ended meanwhile
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    found = list(pids)
    for pid in found:  # grows while it is walked
        found += children.get(pid, [])
    return found


class MemoryWatch:
    """Remembers the most memory that some processes had together, while its block runs.

    Memory that they share is counted once (PSS). A look at each second is a hundredth of one core.
    """

    def __init__(self, pid: int, every_s: float = 1.0) -> None:
        self.peak_bytes = 0
        self._pids = [pid]
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def add(self, pid: int) -> None:
        """Watches one more process, which is no child of the others."""
        self._pids.append(pid)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._every_s):
            together = sum(_pss_bytes(pid) for pid in set(family(self._pids)))
            self.peak_bytes = max(self.peak_bytes, together)


def _pss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it ended meanwhile
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
