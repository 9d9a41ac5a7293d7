"""The package as it is installed: its version, its names, and that importing it starts nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import subprocess
import sys

import prismaio
from packaging.requirements import Requirement

PUBLIC = ["Prisma", "PrismaError", "Sample", "SettingError", "__version__", "connect"]


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(prismaio.__all__) == sorted(PUBLIC)
    assert all(hasattr(prismaio, name) for name in PUBLIC)


def test_the_version_is_the_one_that_was_installed() -> None:
    assert prismaio.__version__ == importlib.metadata.version("prismaio")


def test_type_checkers_are_told_that_the_package_is_typed() -> None:
    assert importlib.resources.files("prismaio").joinpath("py.typed").is_file()


def test_the_base_install_needs_no_framework() -> None:
    needed = map(Requirement, importlib.metadata.requires("prismaio") or [])
    base = {need.name for need in needed if need.marker is None}
    assert base == {"typer", "rich", "prometheus-client"}


def test_the_command_is_installed() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="prismaio")
    assert command.value == "prismaio.cli:main"
    assert callable(command.load())


def test_importing_imports_nothing_that_only_starting_an_engine_or_a_mistake_needs() -> None:
    program = "import prismaio, sys; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    unneeded = {"prismaio.launch", "subprocess", "socket", "difflib", "hashlib", "logging"}
    assert unneeded & loaded == set()


def test_importing_starts_no_thread_and_opens_nothing() -> None:
    program = (
        "import os, sys\n"
        "def now(): return [sorted(os.listdir(f'/proc/self/{kind}')) for kind in ('task', 'fd')]\n"
        "before = now(); import prismaio, prismaio._core; after = now()\n"
        "sys.exit(f'{before} became {after}' if before != after else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_importing_reads_no_setting_from_the_environment() -> None:
    program = (
        "import os\n"
        "asked = []\n"
        "class Watched(type(os.environ)):\n"
        "    def __getitem__(self, key): asked.append(key); return super().__getitem__(key)\n"
        "os.environ.__class__ = Watched\n"
        "assert os.environ['PATH'] and asked == ['PATH']\n"
        "import prismaio\n"
        "print(*[key for key in asked if key.startswith('PRISMAIO')])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == ""
