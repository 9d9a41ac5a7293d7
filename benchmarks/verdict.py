"""The rule that says whether a figure is reached. Pure functions, seeded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Answer = Literal["reached", "not reached", "not resolved"]

_RESAMPLES = 4000
_TIGHT_BAR = 1.05  # bars up to here must be told from 1 more finely


@dataclass(frozen=True)
class Interval:
    """A median and the interval that holds it with 95 % confidence."""

    median: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Relative to the median."""
        return (self.high - self.low) / 2 / abs(self.median) if self.median else 0.0


def interval_of_median(values: Sequence[float], seed: int = 0) -> Interval:
    """Percentile bootstrap of the median.

    Source:
        B. Efron, "Bootstrap Methods: Another Look at the Jackknife", Ann. Statist. 7(1), 1979.
    """
    draw = random.Random(seed)
    medians = sorted(median(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    low, high = medians[round(0.025 * _RESAMPLES)], medians[round(0.975 * _RESAMPLES) - 1]
    return Interval(median(values), low, high)


def judge(
    found: Interval, *, at_most: float | None = None, at_least: float | None = None
) -> Answer:
    """Whether a bar is met, by the interval's unfavourable end and its width."""
    bar = at_most if at_most is not None else at_least
    if bar is None:
        raise ValueError("a bar needs at_most or at_least")
    sign = 1 if at_most is not None else -1
    ends = sorted((sign * found.low, sign * found.high))
    precise = found.half_width <= (0.02 if bar <= _TIGHT_BAR else 0.05)
    if ends[0] > sign * bar or (precise and sign * found.median > sign * bar):
        return "not reached"
    return "reached" if precise and ends[1] <= sign * bar else "not resolved"


def judge_every(
    values: Sequence[float], *, at_most: float | None = None, at_least: float | None = None
) -> Answer:
    """Whether each value meets the bar: for limits that may never be passed."""
    kept = all(
        (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        for value in values
    )
    return "reached" if kept else "not reached"
