"""Random number generators: left as if nobody had drawn from them."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

__all__ = ["Generators", "Globals", "untouched"]


class Globals(NamedTuple):
    """The states of the generators that a process has anyway."""

    python: Any
    torch: torch.Tensor
    numpy: Any  # None where numpy is not in use

    @classmethod
    def now(cls) -> Globals:
        """The states as they are."""
        numpy = sys.modules.get("numpy")
        state = None if numpy is None else numpy.random.get_state(legacy=False)
        return cls(random.getstate(), torch.get_rng_state(), state)

    def restore(self) -> None:
        """Puts the generators back into these states."""
        random.setstate(self.python)
        torch.set_rng_state(self.torch)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Leaves the global generators as they were before the block."""
    before = Globals.now()
    try:
        yield
    finally:
        before.restore()


class Generators:
    """Pairs of a generator and its copy, found in what `copy.deepcopy` noted."""

    def __init__(self, memo: dict[int, Any]) -> None:
        originals = memo.get(id(memo), [])  # deepcopy keeps alive there what it copied
        self._pairs = [
            (original, memo[id(original)])
            for original in originals
            if id(original) in memo and _is_generator(original)
        ]

    def align(self) -> None:
        """Puts each copy into the state that its original is in now."""
        for original, copied in self._pairs:
            if isinstance(original, torch.Generator):
                copied.set_state(original.get_state())
            elif isinstance(original, random.Random):
                copied.setstate(original.getstate())
            elif hasattr(original, "bit_generator"):  # numpy.random.Generator
                copied.bit_generator.state = original.bit_generator.state
            else:
                copied.set_state(original.get_state())


def _is_generator(thing: Any) -> bool:
    if isinstance(thing, (torch.Generator, random.Random)):
        return True
    numpy = sys.modules.get("numpy")
    kinds = () if numpy is None else (numpy.random.Generator, numpy.random.RandomState)
    return isinstance(thing, kinds)
