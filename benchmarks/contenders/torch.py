"""PyTorch's DataLoader over the files, in batches of 64, as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.contenders import Contender, UnavailableError
from benchmarks.job import Job

_BATCH = 64


class Files:
    """A map-style data set."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> bytes:
        with open(self.paths[index], "rb") as file:  # noqa: PTH123 - as the plain loop
            return file.read()


class Reader(Contender):
    """With as many workers as its argument says."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        try:
            from torch.utils import data
        except ImportError as error:
            raise UnavailableError(f"PyTorch is not installed: {error}") from None
        self._data = data

    def loader(self, paths: list[str]) -> Any:
        """The loader that everybody would write."""
        return self._data.DataLoader(
            Files(paths),  # type: ignore[arg-type]
            batch_size=_BATCH,
            num_workers=int(self.job.argument),
            collate_fn=list,
        )

    def samples(self, paths: list[str]) -> Iterator[tuple[bytes]]:
        for batch in self.loader(paths):
            for sample in batch:
                yield (sample,)
