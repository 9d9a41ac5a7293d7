"""Locks that no fork leaves locked."""

from __future__ import annotations

import contextlib
import os
import weakref
from threading import RLock
from types import TracebackType

__all__ = ["ForkSafeLock"]


class ForkSafeLock:
    """A lock that is free in a forked child, whoever held it in the parent. May be taken twice."""

    def __init__(self) -> None:
        self._lock = RLock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(RuntimeError):  # a fork under the lock has freed it in the child
            self._lock.release()

    def renew(self) -> None:
        """Forgets who held it."""
        self._lock = RLock()


_all: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_all):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
