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
    # What was installed beside this Python counts too, whether it is on the path or not.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    cmake = shutil.which("cmake", path=path)
    if cmake is None:
        raise RuntimeError("benchmarks need cmake: `make bench` sees to that")
    names = ["--target", *targets] if targets else []
    for words in (
        ["--preset", "bench", f"-DPython_EXECUTABLE={sys.executable}"],
        ["--build", "--preset", "bench", "-j", "2", *names],
    ):
        _run([cmake, *words], os.environ | {"PATH": path})


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}")
