"""When a figure counts as reached."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.verdict import Interval, interval_of_median, judge, judge_every


@pytest.mark.parametrize(
    ("low", "middle", "high", "answer"),
    [
        (1.05, 1.07, 1.09, "reached"),
        (1.02, 1.08, 1.12, "not resolved"),  # the bar lies within
        (0.90, 1.00, 1.09, "not resolved"),  # below the bar, but known too roughly
        (1.11, 1.20, 1.60, "not reached"),  # rough, and yet above
        (1.09, 1.12, 1.13, "not reached"),
    ],
)
def test_at_most(low: float, middle: float, high: float, answer: str) -> None:
    assert judge(Interval(middle, low, high), at_most=1.1) == answer


@pytest.mark.parametrize(
    ("low", "middle", "high", "answer"),
    [
        (0.96, 0.97, 0.98, "reached"),
        (0.94, 0.96, 0.97, "not resolved"),
        (0.80, 0.85, 0.94, "not reached"),
        (0.96, 1.00, 1.04, "not resolved"),  # a bar near 1 must be known to 2 %
    ],
)
def test_at_least(low: float, middle: float, high: float, answer: str) -> None:
    assert judge(Interval(middle, low, high), at_least=0.95) == answer


def test_a_bar_must_be_on_one_side() -> None:
    with pytest.raises(ValueError, match="at_most or at_least"):
        judge(Interval(1, 1, 1))


def test_a_limit_that_may_never_be_passed_is_not_met_by_a_median() -> None:
    assert judge_every([1, 2, 3], at_most=3) == "reached"
    assert judge_every([1, 1, 4], at_most=3) == "not reached"


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    draw = random.Random(7)
    holds = 0
    for number in range(200):
        found = interval_of_median([draw.gauss(1.0, 0.1) for _ in range(25)], seed=number)
        holds += found.low <= 1.0 <= found.high
    assert holds / 200 > 0.9


def test_the_interval_is_the_same_every_time() -> None:
    values = [1.0, 1.2, 1.1, 1.4, 1.3]
    assert interval_of_median(values) == interval_of_median(values)
