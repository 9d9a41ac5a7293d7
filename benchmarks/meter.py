"""Runs a command and counts what it and everything that it started used.

An engine is nobody's child: it goes on for a moment after the program that started it. So this
process adopts orphans (a "child subreaper"), waits for them and takes their usage too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_ORPHANS_END_WITHIN_S = 10.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

Answer = Callable[[], None]  # sends a command an empty line
OnLine = Callable[[str, Answer], None]  # called with each line that a command prints


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What became of a command."""

    status: int  # as a shell would tell it; negative: the signal that ended it
    lines: list[str]
    complaints: str
    cpu_s: float  # of the command, and of all that it or its children waited for
    orphans_cpu_s: float  # of what nobody waited for: an engine
    others_share: float  # of all cores, what the rest of the machine used meanwhile; and interrupts
    left_over: list[int]  # processes that had to be killed


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    on_line: OnLine | None = None,
) -> Finished:
    """Runs a command to its end, and waits for the end of all that it started.

    Args:
        command: What to run.
        cwd: Where.
        timeout_s: When to kill it.
        on_line: See `OnLine`.
    """
    with _adopting_orphans():
        return _run(command, cwd, timeout_s, on_line)


def _run(command: Sequence[str], cwd: Path, timeout_s: float, on_line: OnLine | None) -> Finished:
    before = children()
    busy_before, began = machine_cpu_s(), time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watchdog = threading.Timer(timeout_s, _kill_group, [process.pid])
    watchdog.start()
    try:
        lines, complaints = _listen(process, on_line)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:  # an interrupt, most likely: nothing may go on without us
        _kill_group(process.pid)
        process.wait()
        raise
    finally:
        watchdog.cancel()
    orphans_cpu_s, left_over = _wait_for_orphans(before)
    cpu_s = _cpu_of(usage)
    others_cpu_s = max(0.0, machine_cpu_s() - busy_before - cpu_s - orphans_cpu_s)
    cores = len(os.sched_getaffinity(0))
    return Finished(
        status=process.returncode,
        lines=lines,
        complaints=complaints,
        cpu_s=cpu_s,
        orphans_cpu_s=orphans_cpu_s,
        others_share=others_cpu_s / cores / (time.monotonic() - began),
        left_over=left_over,
    )


@contextlib.contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Descendants that lose their parent meanwhile become children of this process."""
    before = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(_PR_SET_CHILD_SUBREAPER, before.value)


def _prctl(what: int, argument: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(what, argument, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({what})")


def children() -> set[int]:
    """The processes whose parent this process is."""
    return {pid for pid, parent in parents().items() if parent == os.getpid()}


def parents() -> dict[int, int]:
    """Of every process, its parent."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                after_name = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                found[int(folder.name)] = int(after_name[1])
    return found


def tree_of(roots: set[int]) -> set[int]:
    """These processes and all that descend from them."""
    of = parents()
    found = {pid for pid in roots if pid in of}
    while more := {pid for pid, parent in of.items() if parent in found} - found:
        found |= more
    return found


def _listen(process: subprocess.Popen[str], on_line: OnLine | None) -> tuple[list[str], str]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaints: list[str] = []
    stderr = process.stderr
    listener = threading.Thread(target=lambda: complaints.append(stderr.read()))
    listener.start()
    stdin = process.stdin

    def answer() -> None:
        stdin.write("\n")
        stdin.flush()

    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if on_line is not None:
            on_line(lines[-1], answer)
    listener.join()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    return lines, "".join(complaints)


def _wait_for_orphans(before: set[int]) -> tuple[float, list[int]]:
    """CPU seconds of the children that came to us since, and those that had to be killed."""
    cpu_s, left_over = 0.0, []
    deadline = time.monotonic() + _ORPHANS_END_WITHIN_S
    while orphans := children() - before:
        if time.monotonic() > deadline:
            left_over += [pid for pid in orphans if pid not in left_over]
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            ended, _, usage = os.wait4(pid, os.WNOHANG)
            cpu_s += _cpu_of(usage) if ended else 0.0
        time.sleep(0.002)
    return cpu_s, left_over


def _cpu_of(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def machine_cpu_s() -> float:
    """What all cores were busy with: user, nice, system, irq, softirq."""
    fields = Path("/proc/stat").read_text().split(maxsplit=8)[1:8]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields)
    return (user + nice + system + irq + softirq) / _TICKS_PER_S


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
