"""What is announced: paths or ranges of files, in the order in which they will be read."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Iterable

from prismaio import _core
from prismaio.connection import Connection
from prismaio.fork_safe import ForkSafeLock

__all__ = ["STEP", "Item", "Path", "Plan", "Range", "absolute", "items_of", "numbers", "range_of"]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Item = Path | tuple[Path, int] | tuple[Path, int, int | None]
Range = tuple[bytes, int, int]  # path, offset, length

STEP = 256  # samples announced in one message
_LARGEST = 2**63 - 1  # that a file's offset can be

numbers = itertools.count(1)  # of this process's plans, by which they are cancelled


class Plan:
    """What the consumers of a session will read, named by path: whoever asks for it first gets it.

    A lane is what one consumer reads in this order; several run side by side. Cancelled at the end
    of a `with` block, and when it is dropped.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._number = next(numbers)
        self._announced: dict[int, int] = {}  # samples, by lane
        self._lock = ForkSafeLock()

    def announce(self, paths: Iterable[Item], lane: int = 0) -> None:
        """Says what comes next on a lane, after what was announced on it before.

        Never waits for storage. `paths` are drawn to their end at once.

        Raises:
            TypeError: At what is no path; what came before it is announced.
        """
        lane = operator.index(lane)
        if lane < 0:
            raise ValueError(f"lane must be at least 0, got {lane}")
        items = iter(items_of(paths))
        while True:
            with self._lock:
                first = self._announced.get(lane, 0)
                batch: list[Range] = []
                try:
                    for item in itertools.islice(items, STEP):
                        batch.append(range_of(item, first + len(batch)))
                finally:
                    self._announced[lane] = first + len(batch)
                    self._tell(lane, first, batch)
            if len(batch) < STEP:
                return

    def settle(self) -> None:
        """Waits until the engine knows all that this process announced; not for any read."""
        client = self._connection.client()
        if client is not None:
            client.settle()

    def cancel(self) -> None:
        """Drops what was announced and not yet read, at once. More may be announced after it."""
        with self._lock:
            self._connection.cancel(self._number)
            self._announced.clear()
            self._number = next(numbers)

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.cancel()

    def _tell(self, lane: int, first: int, batch: list[Range]) -> None:
        client = self._connection.client()
        if client is not None and batch:
            self._connection.look()
            client.announce(self._number, lane, first, batch, by_path=True)


def items_of(paths: Iterable[Item]) -> Iterable[Item]:
    """These paths; one path alone, which is iterable too, is a mistake.

    Raises:
        TypeError: If this is no iterable of paths.
    """
    if isinstance(paths, (str, bytes, os.PathLike)) or not hasattr(paths, "__iter__"):
        raise TypeError(f"paths must be an iterable of paths, not {_shown(paths)}")
    return paths


def range_of(item: Item, position: int | None = None) -> Range:
    """An item's absolute path, offset and length.

    Raises:
        TypeError: If it is neither a path nor a (path, offset, length).
        ValueError: If no file can have that name, or no file such a range.
    """
    try:
        if not isinstance(item, tuple):
            return absolute(item), 0, _core.TO_THE_END
        path, offset, length = item if len(item) == 3 else (*item, None)
        return absolute(path), _size(offset), _core.TO_THE_END if length is None else _size(length)
    except (TypeError, ValueError) as error:
        where = "" if position is None else f"plan position {position}: "
        if isinstance(error, TypeError) or "unpack" in str(error):
            what = f"{where}{_shown(item)} is neither a path nor a (path, offset, length)"
            raise TypeError(what) from None
        raise ValueError(f"{where}{_shown(item)}: {error}") from None


def absolute(path: Path) -> bytes:
    """The path from the root, by the directory that this process is in now."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    return name if name.startswith(b"/") else os.getcwdb().rstrip(b"/") + b"/" + name  # noqa: PTH109


def _size(number: int) -> int:
    size = operator.index(number)
    if not 0 <= size <= _LARGEST:
        raise ValueError(f"no file has a range from or of {size} bytes")
    return size


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 100 else text[:97] + '...'} ({type(value).__name__})"
