"""The C++ side of the benchmarks: built when first needed, and found again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "bench"
RAWREAD = FOLDER / "prisma-rawread"
TAKES = FOLDER / "prisma-takes"


def build(*targets: str) -> None:
    """Builds these targets of the CMake preset `bench`, or all of them.

    Raises:
        RuntimeError: If that fails; the message holds what the compiler said.
    """
    cmake = _cmake()
    python = f"-DPython_EXECUTABLE={sys.executable}"
    _run([cmake, "--preset", "bench", python])
    names = ["--target", *targets] if targets else []
    _run([cmake, "--build", "--preset", "bench", "-j", "2", *names])


def _cmake() -> str:
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = shutil.which("cmake", path=beside)
    if found is None:
        raise RuntimeError("benchmarks need cmake: `make bench` sees to that")
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}")
