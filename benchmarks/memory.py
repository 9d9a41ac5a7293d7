"""Peak memory of a tree of processes, and of the anonymous files that they share."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from benchmarks.meter import OnLine, children, tree_of

if TYPE_CHECKING:
    from typing_extensions import Self

_EVERY_S = 0.025
_PRIVATE = ("Pss_Anon:", "Pss_File:")


class MemoryWatch:
    """Samples the memory of all that was started since, while its block runs.

    Proportional set sizes of private and file memory are added up. Shared anonymous files count
    in full by what they hold, which finds pages that nobody has mapped too.
    """

    def __init__(self) -> None:
        self._before = children()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.peak_bytes = 0
        self.peak_processes = 0

    def now_bytes(self) -> int:
        """What is held at this moment."""
        processes = tree_of(children() - self._before)
        self.peak_processes = max(self.peak_processes, len(processes))
        shmem = {"Pss_Shmem:": 0}
        total = sum(_private_bytes(pid, shmem) for pid in processes)
        files = {key: size for pid in processes for key, size in _memfds(pid).items()}
        return total + max(shmem["Pss_Shmem:"], sum(files.values()))

    def look(self) -> int:
        """What is held at this moment, which may be the peak."""
        held = self.now_bytes()
        self.peak_bytes = max(self.peak_bytes, held)
        return held

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            self.look()


def attached_then_peak(watch: MemoryWatch) -> tuple[list[int], OnLine]:
    """A listener for `meter.run` that notes what is held when a contender says "attached"."""
    attached: list[int] = []

    def on_line(line: str, answer: Callable[[], None]) -> None:
        if line in {"attached", "read"}:
            held = watch.look()
            if line == "attached":
                attached.append(held)
            answer()

    return attached, on_line


def _private_bytes(pid: int, shmem: dict[str, int]) -> int:
    """Private and file memory of a process; what it shares is added to `shmem`."""
    total = 0
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(" ")
            if name in _PRIVATE:
                total += int(rest.split()[0]) << 10
            elif name in shmem:
                shmem[name] += int(rest.split()[0]) << 10
    return total


def _memfds(pid: int) -> dict[tuple[int, int], int]:
    """What each anonymous file that a process has open holds."""
    found = {}
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - only names are wanted
            with contextlib.suppress(OSError):
                link = f"/proc/{pid}/fd/{fd}"
                if os.readlink(link).startswith("/memfd:"):  # noqa: PTH115
                    status = os.stat(link)  # noqa: PTH116
                    found[(status.st_dev, status.st_ino)] = status.st_blocks * 512
    return found
