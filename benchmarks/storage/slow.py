"""A file system that takes its time: every open is cold, every request waits.

The slowness lies below all contenders, and what lies below it is warm, so that it is the same for
all. Options are those of `prismaio.testing.Slowness`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from prismaio.testing import SlowStorage

from benchmarks.storage import Storage
from benchmarks.storage.warm import Kind as Warm

if TYPE_CHECKING:
    from typing_extensions import Self

_COUNTED = ("opens", "reads", "reads_in_flight_max", "requests_in_flight_max")


class Kind(Storage):
    """Slow: mounted once for the row; what it counts starts anew with every run."""

    def __init__(self, source: Path, listed: Path, options: Mapping[str, float]) -> None:
        super().__init__(source, listed, options)
        self._below = Warm(source, listed, {})
        self._mount = SlowStorage(source, **options)  # type: ignore[arg-type]

    @property
    def root(self) -> Path:
        return self._mount.path

    def reason_against(self) -> str | None:
        return SlowStorage.available()

    def prepare(self) -> dict[str, float]:
        found = self._below.prepare()
        self._mount.reset_counters()
        return found

    def counted(self) -> dict[str, float]:
        counters = self._mount.counters()
        return {f"storage_{name}": counters[name] for name in _COUNTED}

    def __enter__(self) -> Self:
        self._mount.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._mount.__exit__(kind, error, trace)
