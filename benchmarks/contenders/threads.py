"""A pool of Python threads that reads ahead, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from benchmarks.contenders import Contender


class Reader(Contender):
    """As many files ahead as twice the threads."""

    def start(self) -> None:
        self._threads = int(self.job.argument)
        self._pool = ThreadPoolExecutor(self._threads)

    def samples(self, paths: list[str]) -> Iterator[tuple[bytes]]:
        ahead: deque[Future[bytes]] = deque()
        left = iter(paths)
        ahead.extend(self._pool.submit(_read, path) for path in islice(left, 2 * self._threads))
        while ahead:
            data = ahead.popleft().result()
            ahead.extend(self._pool.submit(_read, path) for path in islice(left, 1))
            yield (data,)

    def close(self) -> None:
        self._pool.shutdown()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - as the plain loop
        return file.read()
