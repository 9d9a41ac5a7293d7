"""The local disk, with nothing of the data in the page cache.

Pages are dropped file by file, which needs no root and disturbs nobody else; names and inodes stay
known to the kernel, for every contender alike.
"""

from __future__ import annotations

from benchmarks.storage import Storage, StorageError, rawread

_ATTEMPTS = 3
_MOST_RESIDENT = 0.001


class Kind(Storage):
    """Cold: at most one page of a thousand is resident."""

    def prepare(self) -> dict[str, float]:
        for _ in range(_ATTEMPTS):
            rawread("drop", 4, self.listed)
            share = self.resident_share()
            if share <= _MOST_RESIDENT:
                return {"resident_before": share}
        raise StorageError(f"{share:.1%} of the data stay in the page cache: another reader?")
