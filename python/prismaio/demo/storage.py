"""The storage that the demo reads from: slow where that can be had, else the disk, cold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from prismaio.testing import SlowStorage, drop_from_cache

__all__ = ["Reads", "Storage", "storage_of"]


class Reads(NamedTuple):
    """Opens and reads that the storage had in flight."""

    mean: float
    most: int

    @classmethod
    def seen(cls, waiting: Mapping[int, int]) -> Reads:
        """From how often so many threads were seen waiting for the disk at once."""
        looks = sum(waiting.values())
        mean = sum(threads * times for threads, times in waiting.items()) / max(looks, 1)
        return cls(mean, max(waiting, default=0))


class Storage(Protocol):
    """A folder as it is seen from its storage."""

    path: Path
    described: str

    def forget(self) -> None:
        """Before a run: nothing is in memory, nothing was counted."""

    def reads(self) -> Reads | None:
        """After a run: what it had in flight from its first to its last, where that is counted."""


class _Slow:
    def __init__(self, slow: SlowStorage, delay_ms: float) -> None:
        self._slow = slow
        self.path = slow.path
        self.described = f"slow storage: each open takes {delay_ms:g} ms, and nothing is cached"

    def forget(self) -> None:
        self._slow.reset_counters()

    def reads(self) -> Reads | None:
        counted = self._slow.counters()
        return Reads(
            counted["requests_in_flight_mean"],
            int(counted["requests_in_flight_max"]),
        )


class _Cold:
    def __init__(self, folder: Path, why: str) -> None:
        self.path = folder
        self.described = f"the disk, from a cold cache ({why})"

    def forget(self) -> None:
        drop_from_cache([self.path])

    def reads(self) -> Reads | None:
        return None


@contextlib.contextmanager
def storage_of(folder: Path, delay_ms: float) -> Iterator[Storage]:
    """The folder on slow storage, or cold where there is no FUSE or no delay is wanted."""
    why = SlowStorage.available() if delay_ms > 0 else "no slow storage was asked for"
    if why is None:
        with SlowStorage(folder, open_delay_s=delay_ms / 1000) as slow:
            yield _Slow(slow, delay_ms)
    else:
        yield _Cold(folder, why)
