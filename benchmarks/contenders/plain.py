"""What everybody writes first: open, read, next."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.contenders import Contender

_PIECE_BYTES = 4 << 20


class Reader(Contender):
    """A loop over `open(path, "rb").read()`; large files in pieces."""

    def samples(self, paths: list[str]) -> Iterator[Iterator[bytes] | tuple[bytes]]:
        if self.job.stream:
            yield from map(_pieces, paths)
            return
        for path in paths:
            with open(path, "rb") as file:  # noqa: PTH123 - what a loop in a hurry does
                yield (file.read(),)


def _pieces(path: str) -> Iterator[bytes]:
    with Path(path).open("rb", buffering=0) as file:
        yield from iter(partial(file.read, _PIECE_BYTES), b"")
