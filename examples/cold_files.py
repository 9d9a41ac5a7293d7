"""Reads a folder of files from a cold page cache, plainly and through PRISMA, and compares.

python examples/cold_files.py [FOLDER]

Without a folder it makes one of 3,000 files of about 110 KB and removes it at the end.
"""

from __future__ import annotations

import hashlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import prismaio


def make_files(folder: Path, count: int = 3000) -> None:
    sizes = random.Random(0)
    for number in range(count):
        path = folder / f"{number:05}.bin"
        path.write_bytes(os.urandom(int(sizes.lognormvariate(11.5, 0.4))))


def drop_from_cache(paths: Iterable[Path]) -> None:
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plainly(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        yield path.read_bytes()


def through_prisma(paths: list[Path]) -> Iterator[memoryview]:
    with prismaio.connect(memory="256MiB", depth=16) as prisma:
        for sample in prisma.iterate(paths):
            yield sample.view()


def timed(
    read: Callable[[list[Path]], Iterable[bytes | memoryview]], paths: list[Path]
) -> tuple[float, str]:
    """Seconds, and a digest of how much came in which order."""
    drop_from_cache(paths)
    digest = hashlib.sha256()
    start = time.perf_counter()
    for content in read(paths):
        digest.update(content)
    return time.perf_counter() - start, digest.hexdigest()


def main(folder: Path) -> int:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if not paths:
        print(f"no files in {folder}", file=sys.stderr)
        return 1
    random.Random(1).shuffle(paths)
    total = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} files, {total / 1e6:.0f} MB, in shuffled order, each from a cold cache")
    times: dict[str, list[float]] = {"plain loop": [], "PRISMA": []}
    digests = set()
    for _ in range(3):
        for name, read in (("plain loop", plainly), ("PRISMA", through_prisma)):
            seconds, digest = timed(read, paths)
            times[name].append(seconds)
            digests.add(digest)
    for name, measured in times.items():
        print(f"{name:12} {statistics.median(measured):6.2f} s (median of {len(measured)})")
    print("the same bytes in the same order" if len(digests) == 1 else "DIFFERENT BYTES")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as made:
        make_files(Path(made))
        sys.exit(main(Path(made)))
