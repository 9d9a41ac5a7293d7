"""Runs one contender once, on storage that is in the state it should be in."""

from __future__ import annotations

import json
from dataclasses import replace

from prismaio.sizes import parse_size

from benchmarks import contenders, meter
from benchmarks.building import ROOT
from benchmarks.contenders import Figures
from benchmarks.job import Job
from benchmarks.memory import MemoryWatch, attached_then_peak
from benchmarks.storage import Storage

_TIMEOUT_S = 600.0
_MIB = 1 << 20


class SkippedError(Exception):
    """The contender cannot run here."""


class FailedError(Exception):
    """The contender ran and did not do what it should."""


def timed(job: Job, storage: Storage) -> Figures:
    """The figures of one pass: what the contender measured, and what it used."""
    found = storage.prepare()
    finished = _run(job, storage)
    answer = _answer(job, finished)
    cpu_s = answer.pop("own_cpu_s", finished.cpu_s) + finished.orphans_cpu_s
    answer |= {**found, **storage.counted(), "others_share": finished.others_share, "cpu_s": cpu_s}
    if answer.get("bytes"):
        answer["cpu_s_per_gb"] = cpu_s / answer["bytes"] * 1e9
    return answer


def digest(job: Job, storage: Storage) -> str:
    """Of all that a contender delivers, in the order in which it does."""
    finished = _run(replace(job, mode="digest"), storage)
    return str(_answer(job, finished)["digest"])


def remembered(job: Job, storage: Storage) -> Figures:
    """Peak memory of one pass, which is not timed."""
    storage.prepare()
    with MemoryWatch() as watch:
        attached, on_line = attached_then_peak(watch)
        finished = _run(replace(job, mode="memory"), storage, on_line)
    _answer(job, finished)
    above = max(0, watch.peak_bytes - attached[0]) if attached else watch.peak_bytes
    return {
        "peak_mib": watch.peak_bytes / _MIB,
        "peak_above_attached_mib": above / _MIB,
        "memory_over_budget_mib": (above - parse_size(job.memory)) / _MIB,
        "processes": watch.peak_processes,
    }


def _run(job: Job, storage: Storage, on_line: meter.OnLine | None = None) -> meter.Finished:
    command = storage.command(contenders.command(job))
    return meter.run(command, cwd=ROOT, timeout_s=_TIMEOUT_S, on_line=on_line)


def _answer(job: Job, finished: meter.Finished) -> dict[str, float]:
    if finished.left_over:
        raise FailedError(f"{job.contender} left processes running: {finished.left_over}")
    if finished.status != 0 or not finished.lines:
        why = finished.complaints.strip().splitlines()[-1:] or ["it said nothing"]
        raise FailedError(f"{job.contender} ended with status {finished.status}: {why[0]}")
    answer = json.loads(finished.lines[-1])
    if "skipped" in answer:
        raise SkippedError(answer["skipped"])
    assert isinstance(answer, dict)
    return answer
