"""What a sampler will give next, from a copy of it that runs ahead and leaves no trace.

The copy is a forecast and nothing more: the sampler itself decides. No data set is copied, and no
random number is drawn that plain training would not draw: the copy has generators of its own, and
the global ones are put back after each step.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from prismaio.torch.randomness import Generators, Globals, untouched

__all__ = ["Forecast", "starts_late"]


def starts_late(sampler: Iterable[Any]) -> bool:
    """Whether `iter(sampler)` does nothing yet: it is a generator that starts with `next`."""
    return inspect.isgeneratorfunction(getattr(type(sampler), "__iter__", None))


class Forecast(Iterator[Any]):
    """The batches (or indices) that a sampler will give from here on.

    Made where the sampler's own `iter` is called, or, if that starts late, before its first
    `next`; aligned before that first `next` in either case.
    """

    def __init__(self, sampler: Iterable[Any], shared: Iterable[Any]) -> None:
        """Copies the sampler.

        Args:
            sampler: What to forecast.
            shared: Objects that it may refer to and that are not copied, such as data sets.

        Raises:
            Exception: Whatever copying the sampler raises: it cannot be forecast.
        """
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

    def __iter__(self) -> Forecast:
        return self

    def __next__(self) -> Any:
        with untouched():
            self._globals.restore()
            try:
                return next(self._batches)
            finally:
                self._globals = Globals.now()
