"""The samples of a plan, one after another, each announced a window ahead of its use."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from prismaio import _core
from prismaio.connection import Connection
from prismaio.fork_safe import ForkSafeLock
from prismaio.plan import STEP, Item, Range, items_of, numbers, range_of

__all__ = ["Iteration", "OnError", "Skipped"]

OnError = Literal["raise", "skip"] | Callable[[str, OSError], Any]

_Place = tuple[int, Range]  # a position and what stands there

_FIRST_STEP = 16  # items drawn at first, so that a slow plan does not hold up its first sample


class Skipped(NamedTuple):
    """A sample that could not be read and was left out."""

    position: int
    path: str
    error: OSError


class Iteration(Iterator[Any]):
    """The samples of a plan in their order. Ends what it announced when it is dropped.

    Several threads may share one: each sample goes to one of them. In a forked child it goes on
    there as it does in the parent.
    """

    def __init__(
        self,
        connection: Connection,
        paths: Iterable[Item],
        on_error: OnError,
    ) -> None:
        self.skipped: list[Skipped] = []
        self._connection = connection
        self._number = next(numbers)
        self._window = _Window(connection, self._number, items_of(paths))
        self._on_error = _checked(on_error)

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        """The next sample, or the substitute for it.

        Raises:
            OSError: Where open() would have raised it. The next call goes on with the next sample.
        """
        while True:
            held: list[_Place] = []  # what an interrupt, at whatever line, must not lose
            try:
                client = self._connection.client()
                position, wanted = self._window.next(client, held)
                if client is None:
                    return self._connection.read_directly(*wanted, position)
                sample = client.take_at(self._number, 0, position, *wanted)
                if client.is_lost:
                    self._connection.look()
                return sample
            except OSError as error:
                if self._on_error == "raise" or not held:
                    raise
                path = os.fsdecode(wanted[0])
                if callable(self._on_error):
                    return self._on_error(path, error)
                self.skipped.append(Skipped(position, path, error.with_traceback(None)))
                self._connection.skipped += 1
            except BaseException:  # a signal's: it is not this sample's fault
                self._window.put_back(held)
                raise

    def close(self) -> None:
        """Drops what was announced and not yet read, at once; so does dropping this object."""
        self._window.end()

    def __del__(self) -> None:
        if hasattr(self, "_window"):
            self.close()


class _Window:
    """Items drawn ahead of their use, and announced."""

    def __init__(self, connection: Connection, number: int, items: Iterable[Item]) -> None:
        lookahead = connection.settings.lookahead
        self._connection = connection
        self._number = number
        self._items = iter(items)
        self._step = min(STEP, lookahead)
        self._draw_at = lookahead - self._step  # so few left: time to draw
        self._drawn = 0
        self._is_drawing = False
        self._waiting: deque[_Place] = deque()  # drawn and not yet asked for
        self._epoch = 0  # of the client that knows of them
        self._has_ended = False
        self._failure: Exception | None = None
        self._lock = ForkSafeLock()

    def next(self, client: _core.Client | None, held: list[_Place]) -> _Place:
        """The next position and what stands there; raises StopIteration at the end.

        It lies in `held` from the very moment on at which it is not in the window any more: one
        call of C moves it, which no signal's handler can part.
        """
        while True:
            if not self._has_ended and len(self._waiting) <= self._draw_at:
                self._draw(client)
            if client is not None and self._epoch != self._connection.epoch:
                self._announce_again(client)
            try:
                held.extend(map(deque.popleft, (self._waiting,)))
                return held[0]
            except IndexError:
                if self._has_ended:
                    break
        self._connection.look()  # who stepped aside does not notice an engine's end by itself
        self.end()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        raise StopIteration

    def put_back(self, held: list[_Place]) -> None:
        """Undoes a `next()`."""
        self._waiting.extendleft(held)

    def end(self) -> None:
        """Cancels what was announced and lets go of the plan."""
        self._has_ended = True
        self._waiting.clear()
        self._items = iter(())
        self._connection.cancel(self._number)

    def _draw(self, client: _core.Client | None) -> None:
        with self._lock:
            if self._has_ended or len(self._waiting) > self._draw_at:
                return  # another thread was here first
            self._connection.look()
            if self._is_drawing:  # an interrupt ended it half-way: what it lost nobody knows
                self._has_ended = True
                self._failure = RuntimeError(
                    "this iteration was interrupted while its plan was drawn, and cannot go on: "
                    "begin another"
                )
                return
            self._is_drawing = True
            first, batch = self._drawn, list[Range]()
            step = min(self._step, max(_FIRST_STEP, first))
            try:
                for item in itertools.islice(self._items, step):
                    batch.append(range_of(item, first + len(batch)))
                self._has_ended = len(batch) < step
            except Exception as failure:  # the plan's own: raised when its turn comes
                self._failure = failure
                self._has_ended = True
            finally:
                self._drawn += len(batch)
                self._waiting.extend(enumerate(batch, first))
                if client is not None and self._epoch == self._connection.epoch and batch:
                    client.announce(self._number, 0, first, batch)
            self._is_drawing = False

    def _announce_again(self, client: _core.Client) -> None:
        """Tells a new client, after the first or after a fork or a lost engine, what is to come."""
        with self._lock:
            self._epoch = self._connection.epoch
            waiting = list(self._waiting)
            if waiting:
                client.announce(self._number, 0, waiting[0][0], [wanted for _, wanted in waiting])


def _checked(on_error: OnError) -> OnError:
    if callable(on_error) or on_error in ("raise", "skip"):
        return on_error
    raise ValueError(
        f'on_error={on_error!r}: must be "raise", "skip" or a function of path and error that '
        "returns a substitute"
    )
