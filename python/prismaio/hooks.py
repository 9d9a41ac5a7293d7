"""Serves planned files to whoever opens them, by `open` and `io.open`, while somebody wants that.

Only opening for reading, by path, with a buffer; everything else is the real `open`. So is what no
plan holds, and what PRISMA could not read: then the real `open` raises what it raises.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import threading
from _io import open as _real_open
from collections.abc import Callable, Iterator
from typing import IO, Any, Protocol

from prismaio.files import file_of
from prismaio.fork_safe import ForkSafeLock

__all__ = ["Taker", "serve", "serving"]

_BINARY = frozenset({"rb", "br"})
_TEXT = frozenset({"r", "rt", "tr"})


class Taker(Protocol):
    """What files are taken from: a Prisma."""

    def take(self, path: Any, /) -> Any:
        """A planned sample, or None when no plan holds it."""


class _Hook:
    """The state of this process's `open`. Forked children inherit it as it is."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self.takers: list[Taker] = []  # replaced, never changed: opening takes no lock
        self.within = threading.local()  # what PRISMA opens itself is not for PRISMA

    def add(self, taker: Taker) -> None:
        with self.lock:
            self.takers = [*self.takers, taker]
            self._replace(_real_open, _open)

    def remove(self, taker: Taker) -> None:
        with self.lock:
            index = next(i for i, one in enumerate(self.takers) if one is taker)
            self.takers = self.takers[:index] + self.takers[index + 1 :]
            if not self.takers:
                self._replace(_open, _real_open)

    def _replace(self, old: Any, new: Any) -> None:
        """Where somebody else has put an `open` of theirs, it stays."""
        for module in (builtins, io):
            if module.open is old:
                module.__dict__["open"] = new

    def take(self, path: str | bytes | os.PathLike[Any]) -> Any:
        if getattr(self.within, "taking", False):
            return None
        self.within.taking = True
        try:
            for taker in self.takers:
                sample = taker.take(path)
                if sample is not None:
                    return sample
        except (OSError, ValueError):  # the real open says it, if it cannot either
            pass
        finally:
            self.within.taking = False
        return None


_hook = _Hook()


def serve(taker: Taker) -> None:
    """Serves planned files in this process from now on: for a process that only loads data."""
    _hook.add(taker)


@contextlib.contextmanager
def serving(taker: Taker) -> Iterator[None]:
    """Serves planned files while the block runs, in all threads."""
    _hook.add(taker)
    try:
        yield
    finally:
        _hook.remove(taker)


def _open(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[str, int], int] | None = None,
) -> IO[Any]:
    binary = mode in _BINARY and encoding is None and errors is None and newline is None
    if (
        (binary or mode in _TEXT)
        and opener is None
        and closefd
        and (buffering == -1 or buffering > 1)
        and isinstance(file, (str, bytes, os.PathLike))
    ):
        sample = _hook.take(file)
        if sample is not None:
            return file_of(sample, file, mode, encoding=encoding, errors=errors, newline=newline)
    return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)


_open.__name__ = _open.__qualname__ = "open"
