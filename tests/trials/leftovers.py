"""What a program that has ended may have left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from prismaio.launch import job_address

__all__ = ["end_all", "listens", "marked", "shared_memory", "wait_until_gone"]


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Number and command line of all living processes that inherited this text in a variable."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or folder.name == str(os.getpid()):
            continue
        with suppress(OSError):  # ended meanwhile, or not ours to look at
            if mark.encode() in (folder / "environ").read_bytes():
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                yield int(folder.name), words.decode(errors="replace").strip()[:200]


def wait_until_gone(mark: str, within_s: float) -> list[tuple[int, str]]:
    """What is still there after so long; returns early when nothing is."""
    deadline = time.monotonic() + within_s
    while (found := list(marked(mark))) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def end_all(mark: str) -> None:
    """Kills what is left."""
    for pid, _ in marked(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def listens(environment: Mapping[str, str]) -> bool:
    """Whether a socket of the engine of a program with this environment still exists."""
    address = job_address(environment)
    assert address is not None
    return f"@{address}\n" in Path("/proc/net/unix").read_text()


def shared_memory() -> set[str]:
    """Names of ours in /dev/shm; there should never be any."""
    with suppress(FileNotFoundError):
        return {name for name in os.listdir("/dev/shm") if "prismaio" in name}  # noqa: PTH208
    return set()
