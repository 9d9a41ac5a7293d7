"""Runs a command and fails if anything that it started still runs a little later.

python tools/run_clean.py COMMAND [ARGUMENT...]

Every process started below the command inherits a mark in its environment, so that an engine or a
file system that lost its parent is still known as ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

GRACE_S = 3.0  # what PRISMA promises: all gone this long after the trainer is
MARK = "PRISMA_RUN_MARK"


def processes_with(mark: str) -> Iterator[tuple[int, str]]:
    """The id and command line of every living process whose environment holds the mark."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                command = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                yield int(folder.name), command.strip()
        except OSError:  # ended meanwhile, or not ours to look at
            continue


def left_over(mark: str) -> list[tuple[int, str]]:
    """What still runs once the grace is over; returns early when nothing does."""
    deadline = time.monotonic() + GRACE_S
    while (found := list(processes_with(mark))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def main(command: list[str]) -> int:
    """Runs the command; its exit status, or 1 when it left something running."""
    mark = uuid.uuid4().hex
    status = subprocess.run(command, env=os.environ | {MARK: mark}, check=False).returncode
    found = left_over(mark)
    for pid, line in found:
        print(f"still running after {command[0]} ended: {pid} {line}", file=sys.stderr)
    return status or (1 if found else 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
