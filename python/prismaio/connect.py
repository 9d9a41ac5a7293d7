"""connect() and what it returns: iterate, read, stats, tune."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterable, Iterator
from types import TracebackType

from prismaio import _core
from prismaio.container import descriptor_limit, memory_limit
from prismaio.errors import SettingError
from prismaio.launch import start_engine
from prismaio.sizes import GIB, MIB, format_size, parse_size

__all__ = ["Prisma", "connect"]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_STEP = 256  # samples announced in one message
_OTHER_DESCRIPTORS = 24  # that the engine may have open besides those of its reads


def connect(
    *, memory: int | str | None = None, depth: int | None = None, lookahead: int = 2048
) -> Prisma:
    """Starts an engine for this program and connects to it.

    Args:
        memory: Bytes that the buffer may take, or a size such as "2GiB"; at least 1 MiB. By default
            2 GiB, or a quarter of what this container or machine allows where that is less.
        depth: Reads in flight at the storage, at least 1. Each takes a file descriptor. By default
            16, or half of the descriptors allowed where that is less.
        lookahead: Samples announced before they are consumed, at least 1.

    Raises:
        SettingError: If a setting is impossible; the message names it.
        OSError: If the system has no room for the engine.
    """
    if depth is None:
        depth = max(1, min(16, descriptor_limit() // 2))
    for name, value in (("depth", depth), ("lookahead", lookahead)):
        if value < 1:
            raise SettingError(f"{name} must be at least 1, got {value}")
    if depth > descriptor_limit() - _OTHER_DESCRIPTORS:
        raise SettingError(
            f"depth {depth} takes as many descriptors, and only {descriptor_limit()} may be open: "
            "ask for less, or raise the limit (ulimit -n)"
        )
    return Prisma(memory_bytes=_checked_memory(memory), depth=depth, lookahead=lookahead)


def _checked_memory(memory: int | str | None) -> int:
    limit = memory_limit()
    if memory is None:
        return max(MIB, min(2 * GIB, limit.limit_bytes // 4))
    try:
        memory_bytes = parse_size(memory) if isinstance(memory, str) else memory
    except ValueError as error:
        raise SettingError(f"memory: {error}") from None
    if memory_bytes < MIB:
        raise SettingError(f'memory must be at least 1 MiB, got {memory!r}: write memory="2GiB"')
    if memory_bytes > limit.limit_bytes:
        raise SettingError(
            f"memory {memory!r} is more than the {format_size(limit.limit_bytes)} that "
            f"{limit.what} allows: ask for less"
        )
    return memory_bytes


class Prisma:
    """A connection to an engine of its own. A forked child reads directly: connect anew there."""

    def __init__(self, *, memory_bytes: int, depth: int, lookahead: int) -> None:
        self._lookahead = lookahead
        self._plans = itertools.count(1)
        address, self._process = start_engine(
            memory_bytes=memory_bytes, buffer_bytes=memory_bytes, depth=depth
        )
        self._client: _core.Client | None = _core.Client(address)

    def iterate(self, paths: Iterable[Path]) -> Iterator[_core.Sample]:
        """Yields the sample of each path, in their order, read ahead.

        The paths may be endless; they are drawn `lookahead` ahead of what was yielded. What they
        raise is raised after the samples before it.

        Raises:
            OSError: At the sample where open() would have raised it. The iteration is over then.
            TypeError: At a path that is not one.
        """
        client = self._connected()
        plan = next(self._plans)
        window = _Window(client, plan, iter(paths), self._lookahead)
        try:
            for position in itertools.count():
                path = window.next()
                if path is None:
                    return
                yield client.take_at(plan, 0, position, path, 0, _core.TO_THE_END)
        finally:
            client.cancel(plan)

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> _core.Sample:
        """Reads one file, or a range of it.

        Raises:
            OSError: As open() would.
        """
        wanted = _core.TO_THE_END if length is None else length
        return self._connected().take_path(_absolute(path), offset, wanted)

    def tune(self, *, depth: int = 0, buffer_bytes: int = 0) -> None:
        """Sets the knobs while running; one that is 0 stays as it is."""
        self._connected().tune(depth, buffer_bytes)

    def stats(self) -> dict[str, int]:
        """What was counted so far, by name; times in ns."""
        return self._connected().counters()

    def close(self) -> None:
        """Lets go of the engine, which ends with its last client and the last view of a sample."""
        self._client = None
        with contextlib.suppress(subprocess.TimeoutExpired):  # samples are held: it ends with them
            self._process.wait(timeout=1)

    def __enter__(self) -> Prisma:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connected(self) -> _core.Client:
        if self._client is None:
            raise ValueError("this connection to PRISMA was closed: connect() makes another")
        return self._client


class _Window:
    """Draws paths ahead of consumption and announces them."""

    def __init__(
        self, client: _core.Client, plan: int, paths: Iterator[Path], lookahead: int
    ) -> None:
        self._client = client
        self._plan = plan
        self._paths = paths
        self._lookahead = lookahead
        self._pending: list[bytes] = []  # drawn and not yet yielded, the next one last
        self._drawn: list[bytes] = []  # drawn after those
        self._announced = 0
        self._ended = False
        self._failure: Exception | None = None

    def next(self) -> bytes | None:
        """The next path; nothing at the end."""
        waiting = len(self._pending) + len(self._drawn)
        if not self._ended and waiting <= self._lookahead - min(_STEP, self._lookahead):
            self._announce(min(_STEP, self._lookahead))
        if not self._pending:
            self._pending, self._drawn = self._drawn[::-1], []
        if self._pending:
            return self._pending.pop()
        if self._failure is not None:
            raise self._failure
        return None

    def _announce(self, count: int) -> None:
        batch: list[bytes] = []
        try:
            for path in itertools.islice(self._paths, count):
                batch.append(_absolute(path))
            self._ended = len(batch) < count
        except Exception as failure:  # the plan's own: raised when its turn comes
            self._ended = True
            self._failure = failure
        self._client.announce(
            self._plan, 0, self._announced, [(path, 0, _core.TO_THE_END) for path in batch]
        )
        self._announced += len(batch)
        self._drawn += batch


def _absolute(path: Path) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"embedded null byte in path {path!r}")
    return name if name.startswith(b"/") else _here() + b"/" + name


def _here() -> bytes:
    return os.getcwdb()  # noqa: PTH109 - as bytes
