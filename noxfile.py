"""One name for each thing that is checked, the same here, in `make` and in CI.

The sessions run in the virtual environment that `make` keeps in .venv, with nothing installed per
session: quick to repeat, and everyone checks with the same versions (requirements/).
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "native", "tests", "stubs", "wheel"]

ROOT = Path(__file__).parent
STUB = ROOT / "python" / "prismaio" / "_core.pyi"
JOBS = str(os.cpu_count() or 2)


def cpp_files() -> list[str]:
    """C++ of ours, tracked or new."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cpp", "*.h"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return [name for name in listed if (ROOT / name).exists()]


def clean(session: nox.Session, *command: str) -> None:
    """Runs a command that must leave nothing running."""
    session.run(sys.executable, "tools/run_clean.py", *command, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Form: ruff and clang-format."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("clang-format", "--dry-run", "-Werror", *cpp_files())


@nox.session(name="format")
def format_(session: nox.Session) -> None:
    """Puts all code into form."""
    session.run("ruff", "check", "--fix", ".")
    session.run("ruff", "format", ".")
    session.run("clang-format", "-i", *cpp_files())


@nox.session
def types(session: nox.Session) -> None:
    """Types: mypy --strict."""
    session.run("mypy", "--strict")


@nox.session
@nox.parametrize("preset", [nox.param(name, id=name) for name in ("release", "asan", "tsan")])
def native(session: nox.Session, preset: str) -> None:
    """The C++ tests, plain and under each sanitizer."""
    session.run("cmake", "--preset", preset, external=True, silent=True)
    session.run("cmake", "--build", "--preset", preset, "-j", JOBS, external=True)
    command = ["ctest", "--preset", preset, "-j", JOBS, *session.posargs]
    if preset == "tsan" and fixed_addresses():
        command = ["setarch", "-R", *command]
    clean(session, *command)


def fixed_addresses() -> bool:
    """Whether addresses can be kept from being random, which older sanitizers cannot bear."""
    try:
        return subprocess.run(["setarch", "-R", "true"], check=False).returncode == 0
    except FileNotFoundError:
        return False


@nox.session
def tests(session: nox.Session) -> None:
    """The Python tests; arguments after -- go to pytest."""
    clean(session, sys.executable, "-m", "pytest", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """All trials, and the tests that take long; arguments after -- are for tools/soak.py."""
    clean(session, sys.executable, "tools/soak.py", *session.posargs)
    if not session.posargs:
        clean(session, sys.executable, "-m", "pytest", "-m", "soak")


@nox.session
def stubs(session: nox.Session) -> None:
    """The committed _core.pyi says what the module has; `-- --write` rewrites it."""
    made = ROOT / "build" / "stubs" / "_core.pyi"
    made.parent.mkdir(parents=True, exist_ok=True)
    session.run("python", "-m", "nanobind.stubgen", "-q", "-m", "prismaio._core", "-o", str(made))
    text = made.read_text()
    if "--write" in session.posargs:
        STUB.write_text(text)
    committed = STUB.read_text() if STUB.exists() else ""
    if committed != text:
        diff = difflib.unified_diff(
            committed.splitlines(), text.splitlines(), "committed", "made", lineterm=""
        )
        session.error("\n".join([*diff, "_core.pyi is out of date: `make stubs` rewrites it"]))


@nox.session
def bench(session: nox.Session) -> None:
    """The figures; arguments after -- name rows, see benchmarks/__main__.py."""
    clean(session, sys.executable, "-m", "benchmarks", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """A wheel per Python of this machine, each tried in an empty environment."""
    clean(session, sys.executable, "tools/wheels.py", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation, into build/docs."""
    session.run("sphinx-build", "-W", "--keep-going", "-q", "docs", "build/docs")
    session.log(f"open {ROOT / 'build' / 'docs' / 'index.html'}")
