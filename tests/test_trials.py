"""Every tenth case of each trial; `make soak` runs them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trials.all_suites import SUITES
from trials.running import run_cases

SEED = 0
SHARE = 0.1


def tenths() -> Iterator[object]:
    """Each suite's tenth, in parts that are one process each."""
    for name, suite in SUITES.items():
        numbers = range(0, suite.cases, 10 if suite.cases >= 20 else 1)
        for start in range(0, len(numbers), suite.batch):
            part = numbers[start : start + suite.batch]
            yield pytest.param(name, list(part), id=f"{name}-{part[0]}")


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("name", "numbers"), list(tenths()))
def test_a_tenth_of_all_trials_goes_well(name: str, numbers: list[int]) -> None:
    suite = SUITES[name]
    reason = suite.reason_against()
    if reason is not None:
        pytest.skip(reason)
    for outcome in run_cases(suite, SEED, numbers, SHARE):
        rerun = f"make soak ARGS='{name} --seed {SEED} --case {outcome.number}'"
        assert outcome.failure == "", f"{rerun} reruns\n{outcome.failure}"
