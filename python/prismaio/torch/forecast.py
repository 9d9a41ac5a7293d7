"""What a sampler will give next, from a copy of it that runs ahead and leaves no trace.

The copy is a forecast and nothing more: the sampler itself decides. No data set is copied, and no
random number is drawn that plain training would not draw: the copy has generators of its own, and
the global ones are put back after each step.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from typing import Any

from prismaio.torch.randomness import Generators, Globals, untouched

__all__ = ["Forecast", "starts_late"]


def starts_late(sampler: Iterable[Any]) -> bool:
    """Whether `iter(sampler)` does nothing yet: it is a generator that starts with `next`."""
    return inspect.isgeneratorfunction(getattr(type(sampler), "__iter__", None))


class Forecast:
    """The batches that a sampler will give from here on.

    Made where the sampler's own `iter` is called, or, if that starts late, before its first
    `next`; aligned before that first `next` in either case.
    """

    def __init__(
        self, sampler: Iterable[Any], *, batched: bool = True, shared: Iterable[Any] = ()
    ) -> None:
        """Copies the sampler.

        Args:
            sampler: What to forecast.
            batched: Whether it gives batches, or single indices, of which each is a batch then.
            shared: Objects that it may refer to and that are not copied, such as data sets.

        Raises:
            Exception: Whatever copying the sampler raises: it cannot be forecast.
        """
        self._batched = batched
        self._ended = False
        self.failure: Exception | None = None  # with which the sampler will end
        memo: dict[int, Any] = {id(one): one for one in shared}
        with untouched():
            copied = copy.deepcopy(sampler, memo)
            self._generators = Generators(memo)
            self._batches = iter(copied)
            self._globals = Globals.now()

    def align(self) -> None:
        """Takes over the states of all generators as they are now."""
        self._generators.align()
        self._globals = Globals.now()

    def draw(self, indices: int) -> list[list[Any]]:
        """The next batches, of at least so many indices together; fewer only at the end."""
        drawn: list[list[Any]] = []
        if self._ended:
            return drawn
        with untouched():  # once for all: states are large
            self._globals.restore()
            while indices > 0 and (batch := self._next()) is not None:
                drawn.append(batch)
                indices -= max(len(batch), 1)
            self._globals = Globals.now()
        return drawn

    def _next(self) -> list[Any] | None:
        try:
            batch = next(self._batches)
            return list(batch) if self._batched else [batch]
        except StopIteration:
            self._ended = True
        except Exception as failure:
            self._ended = True
            self.failure = failure.with_traceback(None)  # which would keep all this alive
        return None
