"""Samples as binary files: whatever reads a file object reads from the buffer.

A small sample is one piece. A large one comes in pieces, each of which goes once the position is
past it; who seeks back, or far ahead, gets what the real file holds there.
"""

from __future__ import annotations

import errno
import io
import operator
import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from prismaio import _core

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["SampleFile", "check_mode", "file_of"]

_NEAR_BYTES = 4 << 20  # ahead: sooner reached by reading on than by another read
_DIRECT_BYTES = 1 << 20  # of the real file at a time
_LINE_BYTES = 1 << 13  # looked through at a time for the end of a line

Name = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def check_mode(mode: str) -> None:
    """Accepts the modes that read.

    Raises:
        ValueError: Otherwise; the message names the mode.
    """
    if not isinstance(mode, str):
        raise TypeError(f"mode must be a str, not {type(mode).__name__}")
    if set(mode) & set("wax+"):
        raise ValueError(f"mode {mode!r} would write: PRISMA opens files for reading only")
    if mode not in ("r", "rb", "br", "rt", "tr"):
        raise ValueError(f'mode {mode!r} is none: "rb" reads bytes, "r" reads text')


def file_of(
    sample: _core.Sample,
    name: Name,
    mode: str = "rb",
    *,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> IO[Any]:
    """A file object, open for reading, on the sample of a whole file.

    Args:
        sample: What it reads. Its room is given back when the file object is closed.
        name: Of the file, as its user knows it; it becomes `name`.
        mode: "rb" for bytes, "r" for text.
        encoding: As the built-in open() takes it, as are `errors` and `newline`.
        errors: For text only.
        newline: For text only.

    Raises:
        ValueError: If the mode is not one for reading, or bytes are to be decoded.
    """
    check_mode(mode)
    file = SampleFile(sample, name)
    if "b" not in mode:
        text = io.TextIOWrapper(file, encoding, errors, newline)
        text.mode = mode  # type: ignore[misc]  # as open() does
        return text
    for what, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
        if value is not None:
            raise ValueError(f"binary mode doesn't take an {what} argument")
    return file  # type: ignore[return-value]


class SampleFile(io.BufferedIOBase):
    """A sample as a binary file, open for reading. Not an io.BufferedReader: see `fileno()`."""

    mode = "rb"

    def __init__(self, sample: _core.Sample, name: Name) -> None:
        self.name = name if isinstance(name, (str, bytes)) else os.fspath(name)
        self._sample: _core.Sample | None = sample
        self._path = sample.path
        self._size = len(sample)
        self._chunks: Iterator[_core.Sample] = iter(sample.chunks())
        self._chunk_at = 0  # where the next chunk begins
        self._piece = memoryview(b"")
        self._piece_at = 0
        self._at = 0
        self._real: int | None = None

    def readable(self) -> bool:
        """True."""
        self._check_open()
        return True

    def seekable(self) -> bool:
        """True."""
        self._check_open()
        return True

    def tell(self) -> int:
        """The position, in bytes."""
        self._check_open()
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves the position, past the end too; reads nothing."""
        self._check_open()
        offset = operator.index(offset)
        if whence in (os.SEEK_DATA, os.SEEK_HOLE):
            self._at = os.lseek(self._open_real(), offset, whence)
            return self._at
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}.get(whence)
        if start is None:
            raise ValueError(f"whence value {whence} unsupported")
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, fewer only at the end; all that is left by default."""
        self._check_open()
        if size is not None and size < -1:
            raise ValueError("read length must be non-negative or -1")
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        first = self._ready()[:wanted]
        self._at += len(first)
        if len(first) == wanted:
            return bytes(first)
        whole = bytearray(first)  # over several pieces
        while len(whole) < wanted and (part := self._ready()[: wanted - len(whole)]):
            whole += part
            self._at += len(part)
        return bytes(whole)

    def read1(self, size: int = -1, /) -> bytes:
        """Bytes that are at hand, at most so many."""
        self._check_open()
        part = self._ready()
        part = part if size < 0 else part[:size]
        self._at += len(part)
        return bytes(part)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fills a buffer, and says how far; less than whole only at the end."""
        self._check_open()
        into = memoryview(buffer).cast("B")
        done = 0
        while done < len(into) and (part := self._ready()[: len(into) - done]):
            into[done : done + len(part)] = part
            done += len(part)
            self._at += len(part)
        return done

    def readinto1(self, buffer: WriteableBuffer, /) -> int:
        """Fills a buffer with what is at hand, and says how far."""
        self._check_open()
        into = memoryview(buffer).cast("B")
        part = self._ready()[: len(into)]
        into[: len(part)] = part
        self._at += len(part)
        return len(part)

    def peek(self, size: int = 0, /) -> bytes:
        """Bytes from the position on, at least one unless at the end, without moving it."""
        self._check_open()
        return bytes(self._ready()[: max(size, _LINE_BYTES)])

    def readline(self, size: int | None = -1, /) -> bytes:
        """Bytes up to and with the end of a line."""
        self._check_open()
        limit = self._size if size is None or size < 0 else size
        line = b""
        while len(line) < limit:
            part = bytes(self._ready()[: min(limit - len(line), _LINE_BYTES)])
            end = part.find(b"\n") + 1
            self._at += end or len(part)
            line += part[:end] if end else part
            if end or not part:
                break
        return line

    def getbuffer(self) -> memoryview:
        """All bytes, in place; of a large file, brought together in this process's memory."""
        self._check_open()
        assert self._sample is not None
        return self._sample.view()

    def fileno(self) -> int:
        """A descriptor of the real file, opened now, at the position of this one.

        Libraries that ask for it of files of Python's own classes only (numpy) read from the
        buffer: this class is none of those.
        """
        real = self._open_real()
        os.lseek(real, self._at, os.SEEK_SET)
        return real

    def isatty(self) -> bool:
        """False."""
        self._check_open()
        return False

    def close(self) -> None:
        """Gives the sample's room back, once the last view of it is gone."""
        if not self.closed:
            self._piece = memoryview(b"")
            self._chunks = iter(())
            self._sample = None
            if self._real is not None:
                os.close(self._real)
        super().close()

    def __repr__(self) -> str:
        return f"<prismaio file name={self.name!r}>"

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def _ready(self) -> memoryview:
        """Bytes from the position on, as many as are at hand; none only at the end."""
        inside = self._at - self._piece_at
        if not 0 <= inside < len(self._piece):
            if self._at >= self._size:
                return memoryview(b"")
            self._find_piece()
            inside = self._at - self._piece_at
        return self._piece[inside:]

    def _find_piece(self) -> None:
        """Gets the piece that holds the position."""
        while self._chunk_at <= self._at < self._chunk_at + _NEAR_BYTES:
            self._piece = memoryview(b"")  # let go of the last one first
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._piece, self._piece_at = chunk.view(), self._chunk_at
            self._chunk_at += len(self._piece)
            if self._at < self._chunk_at:
                return
        start = self._at - self._at % 4096
        real = self._open_real()
        if os.fstat(real).st_size != self._size:
            raise OSError(errno.ESTALE, "the file changed while it was read", self.name)
        part = os.pread(real, _DIRECT_BYTES, start)
        if start + len(part) <= self._at:
            raise OSError(errno.ESTALE, "the file became shorter while it was read", self.name)
        self._piece, self._piece_at = memoryview(part), start

    def _open_real(self) -> int:
        self._check_open()
        if self._real is None:
            self._real = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return self._real
