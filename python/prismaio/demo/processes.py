"""What a run's processes take: sampled from /proc while they run."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Watch", "family"]

_LOOK_EVERY_S = 0.05
_WEIGH_EVERY = 20  # looks: finding out about memory costs more


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


class Watch:
    """Looks at some processes while its block runs: their memory, and who waits for the disk.

    Memory that they share is counted once (PSS). All looks together take about a hundredth of one
    core.
    """

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self.waiting = Counter[int]()  # how often so many threads waited for the disk at once
        self._pids = [pid]
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
        processes: set[int] = set()
        for look in itertools.count(1):
            if self._ended.wait(_LOOK_EVERY_S):
                return
            if look % _WEIGH_EVERY == 1:
                processes = set(family(self._pids))
                self.peak_bytes = max(self.peak_bytes, sum(map(_pss_bytes, processes)))
            self.waiting[sum(map(_waiting_threads, processes))] += 1


def _pss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it ended meanwhile
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _waiting_threads(pid: int) -> int:
    waiting = 0
    for status in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError, IndexError):  # it ended meanwhile
            waiting += status.read_text().rpartition(")")[2].split()[0] == "D"
    return waiting
