"""The program prisma-slowfs, run for one mount, and the socket by which it is steered."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote, unquote

__all__ = ["SlowMount", "find_program", "quoted", "reason_against"]

_PATIENCE_S = 20.0  # for an answer, and for an end
_PROGRAM = "prisma-slowfs"


def find_program() -> Path | None:
    """PRISMAIO_SLOWFS, else what came with the package, else the newest that was built here."""
    named = os.environ.get("PRISMAIO_SLOWFS")
    if named:
        return Path(named)
    here = Path(__file__).resolve().parent
    installed = here / "bin" / _PROGRAM
    if installed.exists():
        return installed
    built = [*here.parents[2].glob(f"build/*/{_PROGRAM}")]
    return max(built, key=lambda program: program.stat().st_mtime, default=None)


def reason_against() -> str | None:
    """Why nothing can be mounted here; None where it can."""
    program = find_program()
    if program is None:
        return f"{_PROGRAM} was not built: it needs libfuse3-dev and pkg-config at build time"
    if not os.access(program, os.X_OK):
        return f"{program} is not a program that can be run"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is missing or not allowed: FUSE is not to be had here"
    if shutil.which("fusermount3") is None:
        return "fusermount3 is missing: install the package fuse3"
    return None


def quoted(value: float | str | bytes) -> str:
    """A value as prisma-slowfs reads it."""
    if isinstance(value, bool):
        return str(int(value))
    return quote(os.fsencode(value)) if isinstance(value, str | bytes) else repr(value)


class SlowMount:
    """A running prisma-slowfs. Thread-safe. It ends with this object's process."""

    def __init__(self, source: bytes, words: list[str]) -> None:
        """Starts it and waits until it is mounted.

        Raises:
            RuntimeError: If it cannot be; the message says why.
        """
        reason = reason_against()
        if reason is not None:
            raise RuntimeError(reason)
        self.path = Path(tempfile.mkdtemp(prefix="prismaio-slow-"))
        self._owner = os.getpid()
        self._lock = threading.Lock()  # one question at a time
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(_PATIENCE_S)
        with theirs:
            self._process = self._start(source, theirs.fileno(), words)
        self._answers = self._socket.makefile("rb")
        try:
            self._answer()
        except BaseException:
            self.end()
            raise

    @property
    def alive(self) -> bool:
        """Whether it still serves."""
        return self._process.poll() is None and self._socket.fileno() >= 0

    def ask(self, line: str) -> dict[str, float]:
        """Sends a command and gives the answer.

        Raises:
            ValueError: If the command makes no sense.
            RuntimeError: If the file system is gone.
        """
        with self._lock:
            with contextlib.suppress(BrokenPipeError):  # then no answer comes either
                self._socket.sendall(line.encode() + b"\n")
            return self._answer()

    def end(self) -> None:
        """Unmounts and waits for the end; does nothing in a forked child."""
        if os.getpid() != self._owner:
            return
        self._answers.close()
        self._socket.close()  # which asks it to end
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._complaints.close()
        _unmount(self.path)

    def _start(self, source: bytes, control: int, words: list[str]) -> subprocess.Popen[bytes]:
        options = [
            f"--control-fd={control}",
            f"--owner-pid={os.getpid()}",
            "--remove-mountpoint=1",
        ]
        program = find_program()
        assert program is not None
        return subprocess.Popen(
            [program, source, self.path, *options, *words],
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints,
            cwd="/",
            start_new_session=True,  # an interrupt at the terminal must not unmount under a reader
        )

    def _answer(self) -> dict[str, float]:
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            raise RuntimeError(self._last_words())
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(unquote(answer["error"]))
        assert isinstance(answer, dict)
        return answer

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE_S)
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").strip()
        return said or f"{_PROGRAM} ended with status {self._process.returncode}"


def _unmount(mountpoint: Path) -> None:
    """Only when prisma-slowfs was killed, and with it what would have unmounted after it."""
    listed = os.fsencode(mountpoint).replace(b" ", rb"\040")
    if listed in Path("/proc/self/mountinfo").read_bytes():
        subprocess.run(["fusermount3", "-u", "-z", "-q", mountpoint], check=False)
    with contextlib.suppress(FileNotFoundError):
        mountpoint.rmdir()
