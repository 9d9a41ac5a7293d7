"""connect() and what it returns: iterate, read, open, plans, stats, tune."""

from __future__ import annotations

import os
from _io import open as open_really  # also where a hook has replaced the built-in one
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import IO, Any, NoReturn

from prismaio import _core
from prismaio.connection import Connection, Meeting
from prismaio.files import check_mode, file_of
from prismaio.iteration import Iteration, OnError
from prismaio.plan import Item, Path, Plan, Range, range_of
from prismaio.settings import Settings, resolve, resolve_knobs

__all__ = ["Prisma", "connect"]


def connect(
    *,
    memory: int | str | None = None,
    depth: int | None = None,
    lookahead: int | None = None,
    engine: str | None = None,
    disable: bool | None = None,
    source: str | None = None,
    log: str | os.PathLike[str] | None = None,
    **mistyped: NoReturn,
) -> Prisma:
    """Connects to this program's engine, which is started where there is none.

    What is not given comes from the environment (PRISMAIO_MEMORY and so on), else a default. Where
    no engine can be had, all is read directly, after one RuntimeWarning.

    Args:
        memory: Bytes that the buffer may take, or a size such as "2GiB"; at least 1 MiB.
        depth: Reads in flight at the storage, at least 1. Each takes a file descriptor.
        lookahead: Samples announced before they are consumed, at least 1.
        engine: Address of a running engine, instead of this program's own.
        disable: Whether to read directly, without any engine.
        source: How files are read: by "threads" or by "io_uring", where the kernel has that.
        log: File that an engine which is started here writes its messages to.
        mistyped: None; what is given here is refused with the nearest name that exists.

    Raises:
        SettingError: If a setting is impossible; the message names it.
        PrismaError: If no engine answers at the address that `engine` names.
    """
    settings = resolve(
        memory=memory,
        depth=depth,
        lookahead=lookahead,
        engine=engine,
        disable=disable,
        source=source,
        log=log,
        **mistyped,
    )
    connection = Connection(settings, session=_new_session())
    connection.join()
    return Prisma(connection)


class Prisma:
    """A connection to an engine: what connect() returns.

    Threads may share it. In a forked child it joins the same engine and session on first use; so it
    does where it is unpickled.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def iterate(self, paths: Iterable[Item], *, on_error: OnError = "raise") -> Iteration:
        """The samples of these paths, in their order, read ahead.

        The paths may be endless; they are drawn `lookahead` ahead of what was yielded. What they
        raise is raised after the samples before it, and ends the iteration.

        Args:
            paths: Of files, or (path, offset, length) where a length of None means to the end.
            on_error: What a sample that cannot be read does. "raise": raises its OSError; the next
                next() goes on after it. "skip": is left out, and listed in `skipped` of what this
                returns. A function of path and error: what it returns is yielded instead.

        Raises:
            TypeError: If `paths` is no iterable; at its place, if an item is no path.
        """
        self._connection.check_open()
        self._connection.renew()
        return Iteration(self._connection, paths, on_error)

    def plan(self) -> Plan:
        """An empty plan, named by path: for several consumers of this session."""
        self._connection.check_open()
        self._connection.renew()
        return Plan(self._connection)

    def take(self, path: Path, offset: int = 0, length: int | None = None) -> _core.Sample | None:
        """What a plan of this session holds under that name; None, and nothing read, if none does.

        Raises:
            OSError: As open() would.
        """
        client = self._connection.client()
        if client is None:
            return None
        sample = client.take_planned(*_wanted(path, offset, length))
        if sample is None or client.is_lost:
            self._connection.look_now_and_then()
        return sample

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> _core.Sample:
        """Reads one file, or a range of it: from the buffer if it was planned, else directly.

        Raises:
            OSError: As open() would.
        """
        wanted = _wanted(path, offset, length)
        client = self._connection.client()
        if client is None:
            return self._connection.read_directly(*wanted)
        sample = client.take_path(*wanted)
        if client.is_lost:
            self._connection.look()
        return sample

    def open(
        self,
        path: Path,
        mode: str = "rb",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """A file object for reading: on what a plan of this session holds, else on the file.

        Raises:
            OSError: As the built-in open() would.
            ValueError: If the mode is not one for reading.
        """
        check_mode(mode)
        try:
            sample = self.take(path)
        except OSError as error:
            error.filename = path  # as it was given, not as it was looked for
            raise
        text = {"encoding": encoding, "errors": errors, "newline": newline}
        if sample is None:
            return open_really(path, mode, **text)  # type: ignore[call-overload, no-any-return]
        return file_of(sample, path, mode, **text)

    def tune(
        self,
        *,
        depth: int | None = None,
        buffer_bytes: int | str | None = None,
        **mistyped: NoReturn,
    ) -> None:
        """Sets the knobs while running; one that is not given stays as it is.

        Args:
            depth: Reads in flight at the storage, at least 1.
            buffer_bytes: Bytes that the buffer may take, or a size such as "2GiB", within the
                memory that the engine was started with.
            mistyped: None; what is given here is refused with the nearest name that exists.

        Raises:
            SettingError: If a knob cannot be set so; the message names it.
        """
        self._connection.check_open()
        self._connection.tune(*resolve_knobs(depth=depth, buffer_bytes=buffer_bytes, **mistyped))

    @property
    def settings(self) -> Settings:
        """What is in force here, and in `origins`, by name, where each value comes from.

        An engine that was joined may have been started with another memory and depth: `stats()`
        has those.
        """
        return self._connection.settings

    def stats(self) -> dict[str, int]:
        """What was counted so far, by name; the guide says what each is."""
        return self._connection.counters()

    def close(self) -> None:
        """Lets go of the engine, which ends with its last client and the last view of a sample."""
        self._connection.close()

    def __enter__(self) -> Prisma:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Prisma], tuple[object, ...]]:
        connection = self._connection
        connection.check_open()
        return _rejoin, (tuple(connection.settings), connection.session, connection.meeting())


def _rejoin(settings: tuple[Any, ...], session: int, meeting: Meeting | None) -> Prisma:
    """What an unpickled Prisma is: in the same session, joined on first use."""
    return Prisma(Connection(Settings(*settings), session=session, meeting=meeting))


def _wanted(path: Path, offset: int, length: int | None) -> Range:
    return range_of(path) if offset == 0 and length is None else range_of((path, offset, length))


def _new_session() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1 | 1
