"""Folders of files with random content, made once from a seed and kept for the next run."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.building import FOLDER

_PER_FOLDER = 100
_PIECE_BYTES = 8 << 20


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """What files a workload reads."""

    files: int
    mean_bytes: int
    sigma: float = 0.5  # of the logarithm of the sizes
    seed: int = 1

    def sizes(self) -> list[int]:
        """Log-normal sizes with this mean: mu = ln(mean) - sigma^2 / 2."""
        draw = random.Random(self.seed)
        mu = math.log(self.mean_bytes) - self.sigma**2 / 2
        return [max(1, round(draw.lognormvariate(mu, self.sigma))) for _ in range(self.files)]

    def names(self) -> list[str]:
        """Paths below the data set's folder, in the order of the files' numbers."""
        return [f"{n // _PER_FOLDER:04}/{n:07}.bin" for n in range(self.files)]

    def smaller(self, files: int) -> DataSet:
        """The same kind of data, but no more than so many files and 16 MB."""
        most_bytes = min(self.mean_bytes, 16_000_000 // files)
        return DataSet(files=files, mean_bytes=most_bytes, sigma=self.sigma, seed=self.seed)


def data_folder() -> Path:
    """Where data sets are kept: PRISMAIO_BENCH_DATA, else below build/."""
    return Path(os.environ.get("PRISMAIO_BENCH_DATA") or FOLDER / "data").resolve()


def provide(data: DataSet) -> Path:
    """The folder of a data set, which is made if it is not there yet."""
    name = f"{data.files}x{data.mean_bytes}-sigma{data.sigma}-seed{data.seed}"
    folder = data_folder() / name
    if folder.exists():
        return folder
    making = data_folder() / f".{name}.{os.getpid()}"
    try:
        _write(data, making)
        making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    return folder


def _write(data: DataSet, folder: Path) -> None:
    for number, (name, size) in enumerate(zip(data.names(), data.sizes(), strict=True)):
        content = random.Random(f"{data.seed}/{number}")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for start in range(0, size, _PIECE_BYTES):
                file.write(content.randbytes(min(_PIECE_BYTES, size - start)))
    (folder / "made_from.json").write_text(json.dumps(asdict(data)))
    os.sync()  # what is not on the disk cannot be dropped from the cache
