"""Which engine this process reads through: joined, lost, joined again; or none, reading directly.

States of a `Connection`, in one process:

    waiting ── client(), once it is time ──▶ joined ── look() finds the engine gone ──▶ lost
       ▲                                                                                  │
       └── no other to be had ◀── client() after 5 s; renew(), where something begins ────┘

A first loss and a first failure each give one warning; after failures the waits grow.
A forked child finds a client that is its parent's, and joins the same engine and session with one
of its own. With the off switch a connection waits for ever.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

from prismaio import _core, program
from prismaio.errors import PrismaError, SettingError
from prismaio.fork_safe import ForkSafeLock
from prismaio.settings import Settings
from prismaio.sizes import format_size

__all__ = ["Connection", "Meeting"]

_RETRY_AFTER_S = 5.0
_LONGEST_RETRY_S = 300.0
_LOOK_EVERY_S = 0.1

_OWN = (  # counted by each client; `Client.counters()` has them all
    "hits",
    "lates",
    "misses",
    "unplanned",
    "taken_bytes",
    "direct_reads",
    "direct_bytes",
    "asides",
    "stall_ns",
    "private_copies",
)
_ENGINES = (  # counted by the engine
    "engine_pid",
    "depth",
    "memory_bytes",
    "buffer_bytes",
    "reads",
    "read_bytes",
    "failures",
    "retries",
    "rereads",
    "used_bytes",
    "reads_in_flight",
    "reads_in_flight_max",
)


class Meeting(NamedTuple):
    """Where the processes of a session find its engine, and which files it reads."""

    address: str
    files_seen: str


class Connection:
    """One program's or worker's place in a session. Thread-safe; usable on both sides of a fork."""

    def __init__(self, settings: Settings, *, session: int, meeting: Meeting | None = None) -> None:
        """Joins nothing yet.

        Args:
            settings: What to start an engine with where there is none.
            session: Which takes by path meet which plans; any number but 0.
            meeting: Where the session's engine is, or is to be; by default where the program's is.
        """
        self.settings = settings
        self.session = session
        self._meeting = meeting
        self.epoch = 0  # clients so far: what was announced to an earlier one is gone
        self.lost_engines = 0
        self.skipped = 0
        self._past = dict.fromkeys(
            _OWN, 0
        )  # what was counted without an engine or with earlier ones
        self._knobs = (0, 0)
        self._client: _core.Client | None = None
        self._retry_at = float("inf") if settings.disable else 0.0
        self._look_at = 0.0
        self._failed_starts = 0
        self._warned = False
        self._closed = False
        self._lock = ForkSafeLock()
        self._presence: program.Presence | None = None

    def join(self) -> None:
        """Joins now. Without an engine all is read directly, after one warning.

        Raises:
            SettingError: If a setting turns out to be impossible.
            PrismaError: If there is none at the address that the settings name.
        """
        if self.settings.disable:
            return
        with self._lock:
            try:
                self._attach()
            except PrismaError as error:
                if isinstance(error, SettingError) or self.settings.engine is not None:
                    raise
                self._do_without(error)

    def client(self) -> _core.Client | None:
        """What to read through now; nothing: read directly."""
        client = self._client
        if client is not None and client.is_ours:
            return client
        return self._another()

    def renew(self) -> None:
        """Where something begins: a lost engine is followed by another at once."""
        self.look()
        with self._lock:
            if self._client is None and self._failed_starts == 0 and not self.settings.disable:
                self._retry_at = 0.0
        self.client()

    def look(self) -> None:
        """Notices an engine that is gone: from here on all is read directly, after one warning."""
        client = self._client
        if client is None or not client.is_ours or client.engine_lives:
            return
        with self._lock:
            if self._client is not client:
                return
            counted = client.counters()
            self._past = {name: count + counted[name] for name, count in self._past.items()}
            self._client = None
            self._retry_at = time.monotonic() + _RETRY_AFTER_S
            self._failed_starts = 0
            self.lost_engines += 1
        _reap()
        _warn("its engine is gone: reading directly until another is there")

    def look_now_and_then(self) -> None:
        """The same, where a look each time would cost too much."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self.look()

    def read_directly(
        self, path: bytes, offset: int, length: int, position: int = 0
    ) -> _core.Sample:
        """Reads without an engine.

        Raises:
            OSError: As open() would.
        """
        sample = _core.read_directly(path, offset, length, position)
        self._past["direct_reads"] += 1
        self._past["direct_bytes"] += len(sample)
        return sample

    def meeting(self) -> Meeting | None:
        """Where another process of this session finds its engine."""
        return self._meeting

    def tune(self, depth: int, buffer_bytes: int) -> None:
        """Sets an engine's knobs, and those of one that follows it; 0 leaves one as it is.

        Raises:
            SettingError: If the engine was started with less memory than that.
        """
        client = self.client()
        most = self.settings.memory_bytes if client is None else client.counters()["memory_bytes"]
        if buffer_bytes > most:
            raise SettingError(
                f"buffer_bytes={buffer_bytes}: more than the {format_size(most)} of memory that "
                "the engine was started with; memory= of connect() says how much that is"
            )
        self._knobs = (depth or self._knobs[0], buffer_bytes or self._knobs[1])
        if client is not None:
            client.tune(depth, buffer_bytes)

    def counters(self) -> dict[str, int]:
        """What this process counted, and its engine; an engine's figures are 0 without one."""
        client = self.client()
        counted = dict.fromkeys([*_OWN, *_ENGINES], 0)
        if client is not None:
            counted |= client.counters()
        for name, count in self._past.items():
            counted[name] += count
        return counted | {"skipped": self.skipped, "lost_engines": self.lost_engines}

    def cancel(self, plan: int) -> None:
        """Drops what is left of a plan of this process."""
        client = self._client
        if client is not None and client.is_ours:
            client.cancel(plan)

    def close(self) -> None:
        """Lets go of the engine, which ends with its last client."""
        self._closed = True
        self._client = None
        self._retry_at = float("inf")
        if self._presence is not None:
            self._presence.end()
        _reap(wait_s=1.0)

    def check_open(self) -> None:
        """Raises ValueError if it was closed."""
        if self._closed:
            raise ValueError("this connection to PRISMA was closed: connect() makes another")

    def _another(self) -> _core.Client | None:
        self.check_open()
        if self._client is None and time.monotonic() < self._retry_at:
            return None
        with self._lock:
            client = self._client
            if client is not None and client.is_ours:
                return client
            if client is None and time.monotonic() < self._retry_at:
                return None
            self._client = None
            self._retry_at = time.monotonic() + _RETRY_AFTER_S  # other threads read directly
            try:
                return self._attach()
            except PrismaError as error:
                self._do_without(error)
                return None

    def _attach(self) -> _core.Client:
        from prismaio import launch  # costly, and without an engine not needed

        def greet(address: str) -> _core.Client:
            return _core.Client(address, self.session)

        if self._presence is None:
            self._presence = program.Presence()
        where = self._meeting
        here = launch.files_seen()
        address = where.address if where is not None and where.files_seen == here else None
        client, found = launch.attach(self.settings, greet, address=address)
        launch.look_after(client.engine_pid)
        self._meeting = Meeting(found.address, here)
        self.epoch += 1
        self._failed_starts = 0
        self._client = client
        if self._knobs != (0, 0):
            client.tune(*self._knobs)
        return client

    def _do_without(self, error: PrismaError) -> None:
        wait_s = min(_RETRY_AFTER_S * 2**self._failed_starts, _LONGEST_RETRY_S)
        self._retry_at = time.monotonic() + wait_s
        self._failed_starts += 1
        if not self._warned and self.lost_engines == 0:
            self._warned = True
            _warn(f"reading directly, nothing is read ahead: {error}")


def _reap(wait_s: float = 0.0) -> None:
    launch = sys.modules.get("prismaio.launch")
    if launch is not None:  # else there was no engine
        launch.reap_all(wait_s)


def _warn(text: str) -> None:
    import warnings

    warnings.warn(f"PRISMA: {text}", RuntimeWarning, stacklevel=_levels_inside() + 1)


def _levels_inside() -> int:
    """How many calls up the user's code is, as whose matter a warning is shown."""
    frame = sys._getframe(1)
    levels = 0
    while frame.f_back is not None and str(frame.f_globals["__name__"]).startswith("prismaio."):
        frame = frame.f_back
        levels += 1
    return levels
