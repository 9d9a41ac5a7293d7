"""The cold local disk under a cap of bytes and reads per second, kept by the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from prismaio.testing import BlkioThrottle

from benchmarks.storage.cold import Kind as Cold

if TYPE_CHECKING:
    from typing_extensions import Self


class Kind(Cold):
    """Capped: contenders run in a control group of their own; dropping caches does not."""

    def __init__(self, source: Path, listed: Path, options: Mapping[str, float]) -> None:
        super().__init__(source, listed, options)
        self._group: BlkioThrottle | None = None

    def reason_against(self) -> str | None:
        return BlkioThrottle.available(self.source)

    def command(self, command: Sequence[str]) -> list[str]:
        assert self._group is not None
        return self._group.command(command)

    def __enter__(self) -> Self:
        self._group = BlkioThrottle(self.source, **self.options)
        self._group.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._group is not None
        self._group.__exit__(kind, error, trace)
