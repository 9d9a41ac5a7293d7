"""What all tests share. Every test has a time limit: see [tool.pytest.ini_options]."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Protocol

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
