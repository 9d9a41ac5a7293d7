"""What a result needs to be compared with another: the machine and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

import prismaio

from benchmarks import meter
from benchmarks.building import ROOT

_MOMENT_S = 0.25
_QUIET_SHARE = 0.15


def described(data: Path) -> dict[str, object]:
    """The machine that this runs on, without its name."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _first_value("/proc/cpuinfo", "model name"),
        "memory": _first_value("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "file_system": _file_system(data),
        "python": platform.python_version(),
        "prismaio": prismaio.__version__,
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "changed_since": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "load_before": os.getloadavg()[0],
    }


def wait_until_quiet(patience_s: float) -> None:
    """Waits until nobody else uses much of the cores, but not for longer than that."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and _busy_share() > _QUIET_SHARE:
        pass


def _busy_share() -> float:
    """Of all cores, for a moment."""
    before = meter.machine_cpu_s()
    time.sleep(_MOMENT_S)
    cores = len(os.sched_getaffinity(0))
    return (meter.machine_cpu_s() - before) / cores / _MOMENT_S


def _first_value(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def _file_system(path: Path) -> str:
    """The kind of the file system that holds a path: of the longest mount point above it."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(point, kind) for point, kind in mounts if path.resolve().is_relative_to(point)]
    return max(above, key=lambda mount: len(mount[0]))[1] if above else "unknown"


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, check=False, capture_output=True, text=True
        )
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"
