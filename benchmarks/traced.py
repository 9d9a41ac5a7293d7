"""How many system calls a program makes between two marks that it sets itself."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_NAME = re.compile(r"^(?:\d+ +)?([a-z0-9_]+)\(")
_WAITING = {"nanosleep", "clock_nanosleep"}  # of the benchmark itself


def available() -> str | None:
    """None where calls can be counted, otherwise the reason why not."""
    return None if shutil.which("strace") else "strace is not installed"


def mark(what: str) -> None:
    """Sets a mark: a call that does nothing and that a tracer sees."""
    with contextlib.suppress(OSError):
        os.write(-1, what.encode())


def run(command: Sequence[str], environment: dict[str, str]) -> tuple[str, Counter[str]]:
    """Runs a command; what it printed, and its main thread's calls between "begin" and "end"."""
    with TemporaryDirectory(prefix="prismaio-bench-") as folder:
        trace = Path(folder) / "trace"
        done = subprocess.run(
            ["strace", "-o", str(trace), *command],
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout, calls_between_marks(trace.read_text().splitlines())


def calls_between_marks(lines: Iterable[str]) -> Counter[str]:
    """Counts calls by name; the benchmark's own waiting is left out."""
    found: Counter[str] = Counter()
    counting = False
    for line in lines:
        if 'write(-1, "begin"' in line:
            counting = True
        elif 'write(-1, "end"' in line:
            counting = False
        elif counting and (name := _NAME.match(line)) and name[1] not in _WAITING:
            found[name[1]] += 1
    return found
