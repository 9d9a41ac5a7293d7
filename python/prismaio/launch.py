"""Finds this program's engine, or starts one: a process of its own that ends with its last client.

Who binds an engine's address is the one to start it; who finds it taken joins. So the address is
the lock, and the kernel gives it back however its holder ends. The address is, in this order: the
one that the settings name; one that all processes of a program or job compute alike; a random one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from prismaio import _core, program, spawn
from prismaio.errors import PrismaError
from prismaio.settings import Settings

__all__ = [
    "Found",
    "attach",
    "files_seen",
    "find_or_start",
    "job_address",
    "look_after",
    "reap",
    "reap_all",
]

_LONGEST_ADDRESS = 100  # bytes; the kernel takes 107
_ATTEMPTS = 5  # to join an engine that is just ending
_Client = TypeVar("_Client")

# Sockets on their way to an engine. A fork at that moment would keep one open in a child that knows
# nothing of it: whoever connects after the engine's end would wait at a listening one for ever.
_on_their_way: set[int] = set()
# Engines that are children of this process, which only happens where it is its container's init.
_to_reap: set[int] = set()


def _forget_the_parents() -> None:
    for descriptor in _on_their_way:
        os.close(descriptor)
    _on_their_way.clear()
    _to_reap.clear()


os.register_at_fork(after_in_child=_forget_the_parents)


class Found(NamedTuple):
    """An engine's address, and whether this call started that engine."""

    address: str
    started: bool


def attach(
    settings: Settings,
    connect: Callable[[str], _Client],
    *,
    address: str | None = None,
    script: str = spawn.ENGINE_SCRIPT,
) -> tuple[_Client, Found]:
    """Connects to this program's engine, which is started where there is none.

    Args:
        settings: What to start an engine with, or which one to join.
        connect: Connects to an address. Raises PermissionError if the peer is another user, and
            another OSError if no engine answers.
        address: Where the engine is, or is to be; by default that of this program or job.
        script: The engine's program.

    Raises:
        PrismaError: If there is no engine to be had. Reading directly is still possible.
    """
    private = False
    for _ in range(_ATTEMPTS):
        with contextlib.ExitStack() as joining:
            found = find_or_start(
                settings, address=address, private=private, script=script, joining=joining
            )
            try:
                return connect(found.address), found
            except OSError as error:
                # Our job's name is another user's, or its engine was stopped: no engine of ours.
                # Otherwise that engine was just ending: one attempt later it has gone, or another
                # process has started the next.
                _check_another_may_answer(settings, found, error)
                private = isinstance(error, (PermissionError, TimeoutError))
    raise PrismaError(f"every engine at {found.address!r} ended while it was joined")


def _check_another_may_answer(settings: Settings, found: Found, error: OSError) -> None:
    if settings.engine is not None:
        raise PrismaError(f"no engine to join at {settings.engine!r}: {error}") from error
    if found.started:
        hint = "" if settings.log else ' (log="FILE" or PRISMAIO_LOG shows why)'
        raise PrismaError(f"the engine did not come up: {error}{hint}") from error


def find_or_start(
    settings: Settings,
    *,
    address: str | None = None,
    private: bool = False,
    script: str = spawn.ENGINE_SCRIPT,
    joining: contextlib.ExitStack | None = None,
) -> Found:
    """The address of this program's engine; it can be connected to at once.

    A connection waits until the engine has come up, and ends when it could not.

    Args:
        settings: What to start an engine with, or which one to join.
        address: Where the engine is, or is to be; by default that of this program or job.
        private: Whether to start one for this program alone, whatever its job or settings say.
        script: The engine's program.
        joining: As long as it lasts, an engine that was started knows by a first connection that
            it is waited for, and ends at once if this process is killed. Otherwise it waits some
            seconds for a client.

    Raises:
        PrismaError: If the system refuses a socket or a process, or there is no interpreter.
    """
    if settings.engine is not None and not private:
        return Found(settings.engine, started=False)
    shared = None if private else address or job_address(os.environ)
    try:
        here = shared or _private_address()
        with _socket(_core.listen_at, here) as listener:
            if joining is not None:
                joining.enter_context(_socket(_core.connect_to, here))
            spawn.start(listener, script, settings)
            return Found(here, started=True)
    except OSError as error:
        if shared is not None and error.errno == errno.EADDRINUSE:
            return Found(shared, started=False)
        raise PrismaError(f"cannot start an engine: {error}") from error


def reap(engine_pid: int) -> bool:
    """Takes the exit status of an engine that ended; returns whether there is none left to take.

    The system's init does so for every engine, except where this program is that init itself, as
    it is in a container that runs nothing else. Does not wait.
    """
    try:
        return os.waitpid(engine_pid, os.WNOHANG)[0] == engine_pid
    except ChildProcessError:
        return True


def look_after(engine_pid: int) -> None:
    """Has `reap_all()` take an engine's status, if it is this process that must."""
    if not reap(engine_pid):
        _to_reap.add(engine_pid)


def reap_all(wait_s: float = 0.0) -> None:
    """Takes the status of every engine that ended, waiting so long for each that has not yet."""
    for pid in list(_to_reap):
        if wait_s > 0:
            spawn.await_end(pid, wait_s)
        if reap(pid):
            _to_reap.discard(pid)


def job_address(environment: Mapping[str, str]) -> str | None:
    """The address that all of this user's program or job compute on this machine; None: neither."""
    job = program.name_in(environment)
    if job is None:
        return None
    address = f"prismaio-{os.geteuid()}-{job}-{files_seen()}"
    if len(address) <= _LONGEST_ADDRESS and address.isascii():
        return address
    from hashlib import sha256  # costly

    digest = sha256(address.encode(errors="surrogateescape"))
    return f"prismaio-{os.geteuid()}-{digest.hexdigest()[:32]}"


def files_seen() -> str:
    """Differs between processes that see other files under the same names.

    They must not share an engine.
    """
    return "-".join([_link("/proc/self/ns/mnt"), _link("/proc/self/ns/pid"), _identity("/")])


def _private_address() -> str:
    return f"prismaio-{os.geteuid()}-{os.urandom(16).hex()}"


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _identity(path: str) -> str:
    status = os.stat(path)
    return f"{status.st_dev}:{status.st_ino}"


@contextlib.contextmanager
def _socket(make: Callable[[str], int], address: str) -> Iterator[int]:
    """A socket's descriptor, closed at the end, and in a child that is forked meanwhile."""
    descriptor = make(address)
    _on_their_way.add(descriptor)
    try:
        yield descriptor
    finally:
        if descriptor in _on_their_way:  # else this is such a child
            _on_their_way.discard(descriptor)
            os.close(descriptor)
