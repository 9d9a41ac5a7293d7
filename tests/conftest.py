"""What all tests share. Every test has a time limit: see [tool.pytest.ini_options]."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import prismaio
import pytest


class Eventually(Protocol):
    """Waits until a condition holds, and fails the test when it has not by the deadline."""

    def __call__(
        self, condition: Callable[[], object], what: str = ..., timeout_s: float = ...
    ) -> None: ...


def pytest_configure(config: pytest.Config) -> None:
    """Keeps the settings of whoever runs the tests out of them."""
    for name in [name for name in os.environ if name.startswith("PRISMAIO_")]:
        del os.environ[name]


def is_alive(pid: int) -> bool:
    """Whether there is such a process, other than one whose status nobody has taken yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """300 files of 0 to 29,900 bytes."""
    paths = [tmp_path / f"{number:03}" for number in range(300)]
    for number, path in enumerate(paths):
        path.write_bytes(os.urandom(100 * number))
    return paths


@pytest.fixture
def prisma() -> Iterator[prismaio.Prisma]:
    """A connection to an engine of this test's own."""
    with prismaio.connect(memory="16MiB", depth=4) as connected:
        yield connected


@pytest.fixture
def eventually() -> Eventually:
    """For what another process does in its own time."""

    def wait(
        condition: Callable[[], object], what: str = "the condition", timeout_s: float = 10.0
    ) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what} did not come about within {timeout_s} s")
            time.sleep(0.005)

    return wait
