"""Builds one wheel per Python found on this machine, and tries each where there is nothing else.

python tools/wheels.py [--only-mine]

A Python counts when it is CPython 3.10 or newer and is on PATH or under pyenv. Each wheel goes to
dist/; it is installed into an empty virtual environment with neither compiler nor framework in
reach, where tests/wheel_smoke.py must run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheels"
OLDEST = (3, 10)
NEWEST_TRIED = 20  # minor version up to which PATH is searched
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cmake", "ninja")
FRAMEWORKS = ("torch", "tensorflow", "jax", "numpy")

ABOUT = """
import json, os, sys, sysconfig
print(json.dumps({
    "path": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
    "version": sys.version_info[:2],
    "kind": sys.implementation.name + getattr(sys, "abiflags", ""),
    "headers": os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """One Python on this machine."""

    path: str
    version: tuple[int, int]
    headers: bool  # without them nothing can be built for it

    @property
    def name(self) -> str:
        """Such as 3.11."""
        return ".".join(map(str, self.version))


class WheelError(Exception):
    """A wheel that cannot be built, or does not work where it is installed."""


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """What the command printed; everything it said is in the error when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        env=env,
        cwd=cwd,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        raise WheelError(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def candidates() -> Iterator[str]:
    """Whatever may be a Python: this one, PATH's, pyenv's."""
    yield sys.executable
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST_TRIED)]
    folders = [Path(folder) for folder in os.get_exec_path()]
    if pyenv := shutil.which("pyenv"):
        folders += sorted(Path(run(pyenv, "root").strip()).glob("versions/*/bin"))
    for folder in folders:
        yield from (str(folder / name) for name in names if os.access(folder / name, os.X_OK))


def interpreters() -> list[Interpreter]:
    """Every CPython that is new enough, each once, oldest first."""
    found: dict[str, Interpreter] = {}
    for candidate in candidates():
        try:
            about = json.loads(run(candidate, "-c", ABOUT))
        except (WheelError, ValueError):  # a launcher that stands for no installed version
            continue
        version = (about["version"][0], about["version"][1])
        if about["kind"] == "cpython" and version >= OLDEST:
            found[about["path"]] = Interpreter(about["path"], version, about["headers"])
    return sorted(found.values(), key=lambda python: (python.version, python.path))


def build(python: Interpreter) -> Path:
    """The wheel for this Python's version, in dist/; quick when little has changed."""
    home = WORK / f"build-{python.name}"
    bin_folder = home / "bin"
    wanted = ROOT / "requirements" / "build.txt"
    stamp = home / "built-with.txt"
    if not stamp.exists() or stamp.read_text() != python.path + wanted.read_text():
        run(python.path, "-m", "venv", "--clear", home)
        run(bin_folder / "python", "-m", "pip", "install", "--quiet", "-r", wanted)
        stamp.write_text(python.path + wanted.read_text())
    with tempfile.TemporaryDirectory(dir=WORK) as fresh:
        run(
            *(bin_folder / "python", "-m", "pip", "wheel", "--quiet", "--no-build-isolation"),
            *("--no-deps", "--wheel-dir", fresh, ROOT),
        )
        (made,) = Path(fresh).glob("prismaio-*.whl")
        return made.replace(ROOT / "dist" / made.name)


def bare_environment(home: Path) -> dict[str, str]:
    """An environment in which the wheel has to do: PATH holds the virtual environment alone."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PRISMAIO_", "PYTHON", "VIRTUAL_ENV"))
    }
    env = kept | {"PATH": str(home / "bin")}
    within_reach = [name for name in COMPILERS if shutil.which(name, path=env["PATH"])]
    if within_reach:
        raise WheelError(f"not an empty environment: {', '.join(within_reach)} within reach")
    return env


def try_out(python: Interpreter, wheel: Path) -> None:
    """Installs the wheel where nothing else is, and runs the smoke program with it."""
    with tempfile.TemporaryDirectory(prefix="prismaio-wheel-") as folder:
        home = Path(folder) / "venv"
        run(python.path, "-m", "venv", home)
        env = bare_environment(home)
        inside = home / "bin" / "python"
        run(inside, "-m", "pip", "install", "--quiet", wheel, env=env, cwd=Path(folder))
        absent = f"import importlib.util as u; assert not any(map(u.find_spec, {FRAMEWORKS!r}))"
        run(inside, "-c", absent, env=env, cwd=Path(folder))
        run(inside, ROOT / "tests" / "wheel_smoke.py", env=env, cwd=Path(folder))


def check(pythons: list[Interpreter]) -> tuple[int, int]:
    """How many Pythons the wheel works on, and on how many it does not."""
    wheels: dict[str, Path] = {}
    passed = failed = 0
    for python in pythons:
        try:
            if python.name not in wheels:
                builder = next(p for p in pythons if p.name == python.name and p.headers)
                wheels[python.name] = build(builder)
            try_out(python, wheels[python.name])
            passed += 1
            print(f"ok      {python.name}  {wheels[python.name].name}  {python.path}", flush=True)
        except WheelError as error:
            failed += 1
            print(f"FAILED  {python.name}  {python.path}\n{error}", flush=True)
    return passed, failed


def main() -> int:
    """Builds, tries, and says how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only-mine", action="store_true", help="only for the Python running this")
    only_mine = parser.parse_args().only_mine
    WORK.mkdir(parents=True, exist_ok=True)
    (ROOT / "dist").mkdir(exist_ok=True)
    found = interpreters()
    if only_mine:
        found = [python for python in found if python.version == sys.version_info[:2]]
    buildable = {python.name for python in found if python.headers}
    for python in found:
        if python.name not in buildable:
            print(f"LEFT OUT {python.name}  {python.path}: no Python.h to build with", flush=True)
    passed, failed = check([python for python in found if python.name in buildable])
    print(f"wheels: {passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
