"""What a row says in the end."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.dataset import DataSet
from benchmarks.race import Outcome
from benchmarks.report import bar_line, table
from benchmarks.workload import Bar, Workload

BAR = Bar(figure="wall_s", against="limit", at_most=1.1)


def outcome(*bars: Bar) -> Outcome:
    workload = Workload(
        name="row",
        title="a row",
        storage="cold",
        data=DataSet(files=1, mean_bytes=1),
        contenders=("prisma",),
        bars=bars,
    )
    return Outcome(workload)


def test_the_limit_is_the_configuration_with_the_best_median() -> None:
    found = outcome(BAR)
    found.figures["limit:1"] = {0: {"wall_s": 1.0}, 1: {"wall_s": 5.0}, 2: {"wall_s": 5.0}}
    found.figures["limit:8"] = {0: {"wall_s": 2.0}, 1: {"wall_s": 2.0}, 2: {"wall_s": 2.0}}
    assert found.limit() == "limit:8"


def test_a_ratio_is_of_the_same_round() -> None:
    found = outcome(BAR)
    found.figures["limit:8"] = {n: {"wall_s": float(n + 1)} for n in range(5)}
    found.figures["prisma"] = {n: {"wall_s": 1.05 * (n + 1)} for n in range(1, 5)}
    assert found.values(BAR) == [1.05] * 4
    assert found.answer(BAR) == "reached"
    assert bar_line(found, BAR) == (
        "prisma wall_s ÷ limit:8: 1.05 [1.05, 1.05], n 4; at most 1.1: reached"
    )


def test_no_bar_is_reached_with_other_bytes() -> None:
    found = outcome(BAR)
    found.figures["limit:8"] = {n: {"wall_s": 1.0} for n in range(5)}
    found.figures["prisma"] = {n: {"wall_s": 0.5} for n in range(5)}
    found.same_bytes["prisma"] = False
    assert found.answer(BAR) is None
    assert bar_line(found, BAR).endswith("not valid: other bytes")
    assert "prisma: OTHER BYTES than a plain loop" in table(found)


def test_what_was_not_measured_is_said_not_to_be() -> None:
    found = outcome(BAR)
    found.absent["prisma"] = "not installed"
    assert bar_line(found, BAR) == "prisma wall_s ÷ limit: not measured; at most 1.1"
    assert "prisma: left out: not installed" in table(found)


def test_a_limit_that_may_never_be_passed_shows_its_worst_value() -> None:
    bar = Bar(figure="memory_over_budget_mib", how="value", at_most=16.0, every=True)
    found = outcome(bar)
    found.memory["prisma"] = [{"memory_over_budget_mib": value} for value in (1.0, 2.0, 20.0)]
    assert bar_line(found, bar).endswith("2 worst 20, n 3; at most 16.0: not reached")
