"""A row as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import median

from benchmarks.race import Outcome
from benchmarks.verdict import interval_of_median
from benchmarks.workload import Bar

_COLUMNS = {  # figure: heading, format
    "wall_s": ("time s", ".3f"),
    "start_s": ("start s", ".3f"),
    "first_s": ("first s", ".3f"),
    "samples_per_s": ("samples/s", ",.0f"),
    "cpu_s_per_gb": ("CPU s/GB", ".2f"),
    "storage_requests_in_flight_max": ("in flight", ".0f"),
    "ns_per_hit": ("ns/hit", ",.0f"),
    "calls_per_hit": ("calls/hit", ".3f"),
    "peak_mib": ("peak MiB", ".0f"),
    "peak_above_attached_mib": ("above idle", ".0f"),
}

_RATIOS = {"wall_s": "x limit", "started_wall_s": "once up"}  # the second without `start_s`


def table(outcome: Outcome) -> str:
    """Medians of all contenders, and what became of each bar."""
    lines = [f"{outcome.workload.name}: {outcome.workload.title}", ""]
    lines += _aligned(_rows(outcome))
    lines += [f"{name}: left out: {reason}" for name, reason in outcome.absent.items()]
    wrong = [name for name, same in outcome.same_bytes.items() if not same]
    lines += [f"{name}: OTHER BYTES than a plain loop" for name in wrong]
    lines += ["", *(bar_line(outcome, bar) for bar in outcome.workload.bars)]
    return "\n".join(lines)


def machine_line(outcome: Outcome, machine: dict[str, object]) -> str:
    """Where this was measured, and how quiet it was there."""
    runs = [one for rounds in outcome.figures.values() for one in rounds.values()]
    others = [one["others_share"] for one in runs if "others_share" in one]
    busy = f"; others used {median(others):.0%} of the cores meanwhile" if others else ""
    changed = " and changes" if machine["changed_since"] else ""
    return (
        f"{machine['cores']} cores of {machine['cpu']}, Linux {machine['kernel']}, "
        f"{machine['file_system']}, commit {machine['commit']}{changed}{busy}"
    )


def bar_line(outcome: Outcome, bar: Bar) -> str:
    """One bar, such as "prisma wall_s ÷ limit:16: 1.05 [1.01, 1.08], n 9; at most 1.1: reached"."""
    other = (outcome.limit() or "limit") if bar.against == "limit" else bar.against
    sign = {"ratio": f" ÷ {other}", "difference": f" - {other}", "value": ""}[bar.how]
    number = f"at most {bar.at_most}" if bar.at_most is not None else f"at least {bar.at_least}"
    name = f"{bar.contender} {bar.figure}{sign}"
    values = outcome.values(bar)
    if not values:
        return f"{name}: not measured; {number}"
    found = interval_of_median(values)
    worst = min(values) if bar.at_most is None else max(values)
    interval = f"[{_short(found.low)}, {_short(found.high)}]"
    spread = f"worst {_short(worst)}" if bar.every else interval
    answer = outcome.answer(bar) or "not valid: other bytes"
    return f"{name}: {_short(found.median)} {spread}, n {len(values)}; {number}: {answer}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def as_json(outcome: Outcome, machine: dict[str, object]) -> dict[str, object]:
    """All that was measured."""
    return {
        "row": outcome.workload.name,
        "workload": asdict(outcome.workload),
        "machine": machine,
        "limit": outcome.limit(),
        "scouted": outcome.scouted,
        "figures": outcome.figures,
        "memory": outcome.memory,
        "absent": outcome.absent,
        "same_bytes": outcome.same_bytes,
        "bars": [
            {
                **asdict(bar),
                "values": outcome.values(bar),
                "answer": outcome.answer(bar),
                "says": bar_line(outcome, bar),
            }
            for bar in outcome.workload.bars
        ],
    }


def save(outcome: Outcome, machine: dict[str, object], folder: Path) -> Path:
    """Writes the JSON of a row; its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.workload.name}.json"
    path.write_text(json.dumps(as_json(outcome, machine), indent=1) + "\n")
    return path


def _rows(outcome: Outcome) -> list[list[str]]:
    by_name = {name: [*rounds.values()] for name, rounds in outcome.figures.items()}
    for name, found in outcome.memory.items():
        by_name[name] = by_name.get(name, []) + found
    measured = {figure for found in by_name.values() for one in found for figure in one}
    figures = [figure for figure in _COLUMNS if figure in measured]
    has_limit = outcome.limit() is not None
    heads = [_COLUMNS[figure][0] for figure in figures]
    ratios = [*_RATIOS.values()] if has_limit else []
    rows = [["contender", "n", *heads[:1], "min-max", *ratios, *heads[1:]]]
    order = sorted(by_name, key=lambda name: _median(by_name[name], figures[0]))
    for name in order:
        found = by_name[name]
        cells = [_cell(found, figure) for figure in figures]
        ratio = [_ratio(outcome, name, figure) for figure in _RATIOS] if has_limit else []
        rows.append(
            [name, str(len(found)), cells[0], _spread(found, figures[0]), *ratio, *cells[1:]]
        )
    return rows


def _ratio(outcome: Outcome, name: str, figure: str) -> str:
    """Of a time to the limit's in the same round."""
    limit = outcome.figures[outcome.limit() or ""]
    mine = outcome.figures.get(name, {})
    values = [
        mine[number][figure] / limit[number]["wall_s"]
        for number in mine.keys() & limit.keys()
        if figure in mine[number]
    ]
    return f"{median(values):.2f}" if values else "-"


def _median(found: list[dict[str, float]], figure: str) -> float:
    values = [one[figure] for one in found if figure in one]
    return median(values) if values else float("inf")


def _cell(found: list[dict[str, float]], figure: str) -> str:
    values = [one[figure] for one in found if figure in one]
    return format(median(values), _COLUMNS[figure][1]) if values else "-"


def _spread(found: list[dict[str, float]], figure: str) -> str:
    values = [one[figure] for one in found if figure in one]
    form = _COLUMNS[figure][1]
    return f"{min(values):{form}}-{max(values):{form}}" if values else "-"


def _aligned(rows: Iterable[list[str]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
