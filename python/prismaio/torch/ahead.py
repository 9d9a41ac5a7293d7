"""A sampler that PRISMA reads ahead of: it gives what the real one gives, announced beforehand."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from prismaio.torch.forecast import Forecast, starts_late
from prismaio.torch.paths import Path, Paths, as_list
from prismaio.torch.randomness import untouched

if TYPE_CHECKING:
    from prismaio import Prisma

__all__ = ["AheadSampler", "Epoch", "ReadAhead"]

_TOGETHER = 256  # samples of all lanes that are announced together: messages cost more than paths


class ReadAhead:
    """What an accelerated loader keeps for all its epochs."""

    def __init__(self, prisma: Prisma, paths: Paths) -> None:
        self.prisma = prisma
        self.paths = paths
        self.mispredicted = 0  # epochs in which the sampler did not do what its copy did
        self._told = False

    @property
    def lookahead(self) -> int:
        """Samples announced before training asks for them."""
        return self.prisma.settings.lookahead

    @property
    def is_off(self) -> bool:
        """Whether PRISMA is switched off: then nobody need know what comes next."""
        return self.prisma.settings.disable

    def tell(self, why: str) -> None:
        """Says once that an epoch, or what is left of it, is read plainly."""
        self.mispredicted += 1
        if not self._told:
            self._told = True
            text = f"PRISMA: {why}; what is left of such an epoch is read without it"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


class AheadSampler:
    """Stands where a loader's iterator expects its sampler (or batch sampler)."""

    def __init__(
        self,
        sampler: Iterable[Any],
        ahead: ReadAhead,
        *,
        lanes: int,
        batched: bool,
        shared: Iterable[Any],
    ) -> None:
        """Changes nothing yet.

        Args:
            sampler: The real one, which alone decides.
            ahead: What to read ahead with.
            lanes: Workers that take turns, 1 if nobody knows who will be next.
            batched: Whether the sampler gives lists of indices.
            shared: What the sampler may refer to and that is never copied, such as data sets.
        """
        self.sampler = sampler
        self.ahead = ahead
        self.lanes = lanes
        self.batched = batched
        self.shared = list(shared)

    def __iter__(self) -> Epoch:
        return Epoch(self)

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]  # as without PRISMA, also where it fails


class Epoch(Iterator[Any]):
    """One pass: batches from the real sampler, each announced a window ahead on its lane."""

    def __init__(self, source: AheadSampler) -> None:
        self._source = source
        self._plan = source.ahead.prisma.plan()
        self._expected: deque[list[Any]] = deque()  # batches announced and not drawn yet
        self._expected_samples = 0
        self._batches_announced = 0
        self._collected: dict[int, list[Path]] = {}  # by lane, to be announced together
        self._begun = False
        self._forecast: Forecast | None = None
        self._late = starts_late(source.sampler)
        if not self._late:
            self._make_forecast()
        self._real = iter(source.sampler)

    def __next__(self) -> Any:
        if not self._begun:
            self._begin()
        elif self._forecast is not None:
            self._announce()
        try:
            batch = next(self._real)
        except StopIteration:
            self._check_end()
            raise
        self._check(batch)
        return batch

    def stop(self) -> None:
        """Drops what was announced and not read."""
        self._forecast = None
        self._expected.clear()
        self._plan.cancel()

    def _begin(self) -> None:
        self._begun = True
        if self._late:
            self._make_forecast()
        if self._forecast is not None:
            self._forecast.align()
            self._announce()
            self._plan.settle()

    def _make_forecast(self) -> None:
        source = self._source
        if source.ahead.is_off:
            return
        try:
            self._forecast = Forecast(source.sampler, batched=source.batched, shared=source.shared)
        except Exception as error:
            name = _name_of(source.sampler)
            source.ahead.tell(f"{name} cannot be run ahead ({error})")

    def _announce(self) -> None:
        """Fills the window up once a quarter of it, or more, is free."""
        lookahead = self._source.ahead.lookahead
        if self._expected_samples > lookahead * 3 // 4:
            return
        try:
            assert self._forecast is not None
            batches = self._forecast.draw(lookahead - self._expected_samples)
            with untouched():  # by the user's own function of paths, too
                for indices in batches:
                    self._collect(indices)
                self._announce_collected()
        except Exception as error:
            self._give_up(f"the files of its indices cannot be told ({error!r})")

    def _collect(self, indices: list[Any]) -> None:
        source = self._source
        lane = self._collected.setdefault(self._batches_announced % source.lanes, [])
        for index in indices:
            lane += as_list(source.ahead.paths(index))
        self._batches_announced += 1
        self._expected.append(indices)
        self._expected_samples += len(indices)
        if sum(map(len, self._collected.values())) >= _TOGETHER:
            self._announce_collected()

    def _announce_collected(self) -> None:
        for lane, paths in self._collected.items():
            self._plan.announce(paths, lane)
        self._collected.clear()

    def _check(self, batch: Any) -> None:
        if self._forecast is None:
            return
        expected = self._expected.popleft() if self._expected else None
        got = batch if self._source.batched else [batch]
        if not hasattr(got, "__getitem__"):
            self._give_up("its batches can be looked at only once")
        elif expected is None and self._forecast.failure is not None:
            self._give_up(f"running ahead of it failed ({self._forecast.failure!r})")
        elif expected is None or not _same(expected, got):
            self._give_up("it gave other batches than a copy of it")
        else:
            self._expected_samples -= len(expected)

    def _check_end(self) -> None:
        if self._forecast is not None and self._expected:
            self._give_up("it ended before a copy of it did")

    def _give_up(self, why: str) -> None:
        self.stop()
        self._source.ahead.tell(f"{_name_of(self._source.sampler)}: {why}")


def _name_of(sampler: Any) -> str:
    """Its kind, and that of the sampler within it, whose doing it may be."""
    names = [type(sampler).__name__]
    while len(names) < 5 and (sampler := getattr(sampler, "sampler", None)) is not None:
        names.append(type(sampler).__name__)
    return " of ".join(names)


def _same(expected: list[Any], got: Any) -> bool:
    try:
        return expected == list(got)
    except Exception:  # arrays, whose truth is ambiguous
        return len(expected) == len(got) and all(map(_equal, expected, got))


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool((one == other).all())
    except Exception:  # whatever they are, nobody can say that they are equal
        return False
