"""Starts an engine's process by exec: with a socket to listen at, and nothing else of this one.

Training waits for this: the modules that would do the same (subprocess, pathlib) take longer to be
imported than the engine to start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys

from prismaio import _core
from prismaio.errors import PrismaError, SettingError
from prismaio.settings import Settings

__all__ = ["ENGINE_SCRIPT", "await_end", "start"]

ENGINE_SCRIPT = os.path.join(os.path.dirname(__file__), "_engine.py")

_START_WITHIN_S = 30.0  # an interpreter that has not come up by then never will
_LISTEN_FD = 3  # in the engine
_LOWEST_FD = 4  # here, of what becomes one of the engine's first four


def start(listener: int, script: str, settings: Settings) -> None:
    """Runs the engine, which detaches at once: the child waited for here is not the engine.

    Args:
        listener: The descriptor of the socket at which it is to listen, at least 4.
        script: The engine's program.
        settings: What it is to be started with.

    Raises:
        PrismaError: If it ended at once, or there is no interpreter.
        SettingError: If the log cannot be written to.
        OSError: If the system refuses a process.
    """
    options = {
        "--listen-fd": _LISTEN_FD,
        "--memory-bytes": settings.memory_bytes,
        "--buffer-bytes": settings.memory_bytes,
        "--depth": settings.depth,
        "--source": settings.source,
        "--package-path": os.pathsep.join(_package_path()),
    }
    command = [
        *_interpreter(),
        script,
        *(str(word) for option in options.items() for word in option),
    ]
    output = _open_log(settings.log)
    try:
        child = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
                (os.POSIX_SPAWN_DUP2, listener, _LISTEN_FD),
            ],
            setsid=True,
        )
    finally:
        os.close(output)
    status = _status_of(child)
    if status != 0:
        log = settings.log
        hint = f"see {log}" if log else 'log="FILE" or PRISMAIO_LOG shows why'
        raise PrismaError(f"the engine's process ended at once, with status {status}: {hint}")


def await_end(pid: int, wait_s: float) -> bool:
    """Waits for a process to end, at most so long. False: the kernel cannot tell."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        select.select([process], [], [], wait_s)
    finally:
        os.close(process)
    return True


def _status_of(child: int) -> int:
    """The exit status of a child that is to end at once."""
    try:
        is_told = await_end(child, _START_WITHIN_S)
        pid, status = os.waitpid(child, os.WNOHANG if is_told else 0)
        if pid != child:  # it hangs
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
    except ChildProcessError:
        return 0  # nobody knows: this program has the kernel forget its children
    except BaseException:  # whatever a signal's handler raises
        with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it may have ended by now
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status)


def _interpreter() -> list[str]:
    """This Python, alone: without the user's modules, start-up files and variables."""
    name = os.path.basename(sys.executable or "")
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
    files = (__file__, _core.__file__)
    folders = [os.path.dirname(os.path.abspath(file)) for file in files]
    return list(dict.fromkeys(folders))


def _open_log(log: str | None) -> int:
    """A descriptor that is not among those which the engine is given."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        lowest = os.open(log or os.devnull, flags, 0o600)
    except OSError as error:
        raise SettingError(f"log={log!r}: cannot be written to: {error.strerror}") from error
    try:
        return fcntl.fcntl(lowest, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    finally:
        os.close(lowest)
