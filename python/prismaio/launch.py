"""Finds this program's engine, or starts one: a process of its own that ends with its last client.

Who binds an engine's address is the one to start it; who finds it taken joins. So the address is
the lock, and the kernel gives it back however its holder ends. The address is, in this order: the
one that the settings name; one that all processes of a program or job compute alike; a random one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import NamedTuple, TypeVar

from prismaio import program
from prismaio.errors import PrismaError, SettingError
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

ENGINE_SCRIPT = Path(__file__).with_name("_engine.py")

_BACKLOG = 4096
_START_WITHIN_S = 30.0  # an interpreter that has not come up by then never will
_ATTEMPTS = 5  # to join an engine that is just ending
_Client = TypeVar("_Client")

# Sockets on their way to an engine. A fork at that moment would keep one open in a child that knows
# nothing of it: whoever connects after the engine's end would wait at a listening one for ever.
_on_their_way: weakref.WeakSet[socket.socket] = weakref.WeakSet()
# Engines that are children of this process, which only happens where it is its container's init.
_to_reap: set[int] = set()


def _forget_the_parents() -> None:
    for listener in list(_on_their_way):
        listener.close()
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
    script: Path = ENGINE_SCRIPT,
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
    script: Path = ENGINE_SCRIPT,
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
        with _listen_at(shared or _private_address()) as listener:
            if joining is not None:
                joining.enter_context(_connect_to(listener))
            _start(
                listener,
                script,
                memory_bytes=settings.memory_bytes,
                buffer_bytes=settings.memory_bytes,
                depth=settings.depth,
                source=settings.source,
                log=settings.log,
            )
            return Found(_name_of(listener), started=True)
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
            _await_end(pid, wait_s)
        if reap(pid):
            _to_reap.discard(pid)


def _await_end(pid: int, wait_s: float) -> None:
    with contextlib.suppress(OSError):
        process = os.pidfd_open(pid)
        try:
            select.select([process], [], [], wait_s)
        finally:
            os.close(process)


def job_address(environment: Mapping[str, str]) -> str | None:
    """The address that all of this user's program or job compute on this machine; None: neither."""
    job = program.name_in(environment)
    if job is None:
        return None
    from hashlib import sha256

    digest = sha256(f"{job}\0{files_seen()}".encode(errors="surrogateescape"))
    return f"prismaio-{os.geteuid()}-{digest.hexdigest()[:32]}"


def files_seen() -> str:
    """Differs between processes that see other files under the same names.

    They must not share an engine.
    """
    return "\0".join([_link("/proc/self/ns/mnt"), _link("/proc/self/ns/pid"), _identity("/")])


def _private_address() -> str:
    return f"prismaio-{os.geteuid()}-{os.urandom(16).hex()}"


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _identity(path: str) -> str:
    status = Path(path).stat()
    return f"{status.st_dev}:{status.st_ino}"


def _listen_at(address: str) -> socket.socket:
    listener = _new_socket()
    _on_their_way.add(listener)
    try:
        listener.bind("\0" + address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _new_socket() -> socket.socket:
    """Not among the first three descriptors, which a daemon has closed, and its engine opens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as lowest:
        return socket.socket(fileno=fcntl.fcntl(lowest, fcntl.F_DUPFD_CLOEXEC, 3))


def _connect_to(listener: socket.socket) -> socket.socket:
    connection = _new_socket()
    _on_their_way.add(connection)
    try:
        connection.connect(listener.getsockname())
    except BaseException:
        connection.close()
        raise
    return connection


def _name_of(listener: socket.socket) -> str:
    name: bytes = listener.getsockname()
    return os.fsdecode(name[1:])


def _start(
    listener: socket.socket,
    script: Path,
    *,
    memory_bytes: int,
    buffer_bytes: int,
    depth: int,
    source: str,
    log: str | None,
) -> None:
    """Runs the engine, which detaches at once: the child waited for here is not the engine."""
    options = {
        "--listen-fd": listener.fileno(),
        "--memory-bytes": memory_bytes,
        "--buffer-bytes": buffer_bytes,
        "--depth": depth,
        "--source": source,
        "--package-path": os.pathsep.join(_package_path()),
    }
    words = [str(word) for option in options.items() for word in option]
    with _open_log(log) as output:
        process = subprocess.Popen(
            [*_interpreter(), str(script), *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
    try:
        _await_end(process.pid, _START_WITHIN_S)  # `wait` with a limit sleeps and looks
        status = process.wait(_START_WITHIN_S)
    except BaseException:
        process.kill()
        process.wait()
        raise
    if status != 0:
        hint = f"see {log}" if log else 'log="FILE" or PRISMAIO_LOG shows why'
        raise PrismaError(f"the engine's process ended at once, with status {status}: {hint}")


def _interpreter() -> list[str]:
    """This Python, alone: without the user's modules, start-up files and variables."""
    name = Path(sys.executable or "").name
    frozen = getattr(sys, "frozen", False)
    if frozen or not any(kind in name for kind in ("python", "pypy")):
        raise PrismaError(
            f"cannot start an engine: sys.executable, {sys.executable!r}, is no Python "
            "interpreter (a frozen or embedding program?); name a running engine instead"
        )
    # Where PYTHONHOME is set, Python may not find its own library without it.
    return [sys.executable, "-BS" if "PYTHONHOME" in os.environ else "-IBS"]


def _package_path() -> list[str]:
    """Folders that hold this package: more than one where an editable install splits it."""
    folders = [str(Path(__file__).parent.absolute())]
    core = find_spec("prismaio._core")
    if core is not None and core.origin is not None:
        folders.append(str(Path(core.origin).parent.absolute()))
    return list(dict.fromkeys(folders))


def _open_log(log: str | None) -> FileIO:
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return FileIO(os.open(log or os.devnull, flags, 0o600), "w")
    except OSError as error:
        raise SettingError(f"log={log!r}: cannot be written to: {error.strerror}") from error
