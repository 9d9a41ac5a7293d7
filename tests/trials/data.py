"""Files and plans at random, and what plain reads of them give."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "DataSet",
    "Outcome",
    "Wanted",
    "digest",
    "errno_of",
    "make_files",
    "plainly",
    "random_plan",
]

Outcome = str | int  # the digest of what was read, or the errno of why not
ODD = [b"", b" ", b"\n", b"%41", b"\xff\xfe", "ä€".encode(), b"=", b"*", b"\\"]


class Wanted(NamedTuple):
    """A range of a file. Takes are by it as it is, so it is a plan's item too."""

    path: bytes
    offset: int = 0
    length: int | None = None


class DataSet(NamedTuple):
    """Names below a folder: of files, and of what cannot be read."""

    folder: bytes
    files: list[bytes]
    unreadable: list[bytes]

    def below(self, folder: os.PathLike[str]) -> DataSet:
        """The same seen at another place."""
        return self._replace(folder=os.fsencode(folder))

    def path(self, name: bytes) -> bytes:
        return self.folder + b"/" + name


def digest(data: bytes | memoryview) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def make_files(folder: Path, chance: random.Random, sizes: Sequence[int]) -> DataSet:
    """A file of each size, with odd names, and four names that cannot be read."""
    root = os.fsencode(folder)
    files = []
    for number, size in enumerate(sizes):
        name = b"%03d" % number + chance.choice(ODD)
        Path(os.fsdecode(root + b"/" + name)).write_bytes(chance.randbytes(size))
        files.append(name)
    (folder / "directory").mkdir()
    (folder / "loop").symlink_to("loop")
    unreadable = [b"missing", b"directory", b"loop", b"n" * 300, files[0] + b"/below"]
    return DataSet(root, files, unreadable)


def random_plan(chance: random.Random, data: DataSet, length: int) -> Iterator[Wanted]:
    """With repeats, ranges within and past the end, and what cannot be read."""
    wrong_share = chance.choice([0.0, 0.0, 0.02, 0.2])
    range_share = chance.choice([0.0, 0.2])
    for _ in range(length):
        if chance.random() < wrong_share:
            yield Wanted(data.path(chance.choice(data.unreadable)))
        elif chance.random() < range_share:
            offset = chance.choice([0, 1, 4096, chance.randrange(200_000)])
            length_ = chance.choice([None, 0, 1, 4096, chance.randrange(200_000)])
            yield Wanted(data.path(chance.choice(data.files)), offset, length_)
        else:
            yield Wanted(data.path(chance.choice(data.files)))


def plainly(wanted: Wanted) -> Outcome:
    """What open(), seek() and read() give."""
    try:
        with open(wanted.path, "rb", buffering=0) as file:  # noqa: PTH123 - any bytes
            file.seek(wanted.offset)
            data = file.read(-1 if wanted.length is None else wanted.length) or b""
    except OSError as error:
        return errno_of(error)
    return digest(data)


def errno_of(error: OSError) -> int:
    assert error.errno is not None
    return error.errno
