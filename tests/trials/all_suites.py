"""All suites, in the order in which they are run: the quick ones first."""

from __future__ import annotations

from importlib import import_module

from trials.deviations import Deviations
from trials.early_end import EarlyEnds
from trials.ended import Interrupts, InterruptsOfWaiting, KilledPrograms, KilledTrainers
from trials.faults import Faults
from trials.flat import Flat
from trials.killed import KilledEngines, KilledWorkers, StoppedEngines
from trials.random_plans import RandomPlans
from trials.suite import Suite

__all__ = ["SUITES", "suite_named"]

_ALL: list[type[Suite]] = [
    RandomPlans,
    Deviations,
    KilledEngines,
    KilledWorkers,
    KilledTrainers,
    KilledPrograms,
    StoppedEngines,
    Interrupts,
    InterruptsOfWaiting,
    EarlyEnds,
    Faults,
    Flat,
]
SUITES = {suite.name: suite for suite in _ALL}


def suite_named(name: str) -> type[Suite]:
    """One of these, or MODULE:CLASS.

    Raises:
        KeyError: If there is none.
    """
    module, colon, of_module = name.partition(":")
    return getattr(import_module(module), of_module) if colon else SUITES[name]
