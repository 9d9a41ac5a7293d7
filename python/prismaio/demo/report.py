"""What the demo shows while it runs and afterwards: progress, a table, a picture."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from prismaio.demo.runs import Run
from prismaio.sizes import format_size

__all__ = ["COLOURS", "draw", "following", "table"]

COLOURS = {"PyTorch": "#c2571a", "PyTorch + PRISMA": "#1a6fc2"}
_SAY_EVERY_S = 5.0  # where there is no terminal to draw a bar on

Update = Callable[[int, int, str], None]  # done, of how many, and what else there is to say


@contextlib.contextmanager
def following(console: Console, title: str) -> Iterator[Update]:
    """Shows how far something is: a bar on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield _lines(console, title)
        return
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=1, note="")

        def update(done: int, total: int, note: str) -> None:
            progress.update(task, completed=done, total=total, note=note)

        yield update


def _lines(console: Console, title: str) -> Update:
    said = time.monotonic() - _SAY_EVERY_S

    def update(done: int, total: int, note: str) -> None:
        nonlocal said
        if done == total or time.monotonic() - said >= _SAY_EVERY_S:
            said = time.monotonic()
            line = f"{title}: {done}/{total} {note}".rstrip()
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return update


def table(runs: dict[str, Run]) -> Table:
    """The figures of both runs, side by side."""
    rows: dict[str, Callable[[Run], str]] = {
        "time": lambda run: f"{run.time_s:.1f} s",
        "waiting for data": lambda run: f"{run.wait_s:.1f} s",
        "accelerator utilisation": lambda run: f"{run.utilisation:.0%}",
        "samples/s": lambda run: f"{run.samples_per_s:,.0f}",
        "reads in flight, mean (most)": _reads,
        "memory, all processes": lambda run: format_size(run.peak_bytes >> 20 << 20),
        "loss at the end": lambda run: f"{run.loss:.6f}",
        "weights (SHA-256)": lambda run: run.digest[:16],
    }
    shown = Table()
    shown.add_column("")
    for name in runs:
        shown.add_column(name, justify="right")
    for title, cell in rows.items():
        shown.add_row(title, *(cell(run) for run in runs.values()))
    return shown


def _reads(run: Run) -> str:
    return f"{run.reads.mean:.1f} ({run.reads.most})"


def draw(runs: dict[str, Run], path: Path, storage: str) -> None:
    """Draws how long each step waited, and all steps up to it.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the picture cannot be written.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where it caches fonts is no news
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    each, together = figure.subplots(2, 1, sharex=True)
    for name, run in runs.items():
        steps = range(1, len(run.waits_s) + 1)
        label = f"{name}: {run.wait_s:.1f} s"
        each.plot(steps, [1000 * wait for wait in run.waits_s], color=COLOURS[name], lw=1)
        together.plot(steps, list(itertools.accumulate(run.waits_s)), color=COLOURS[name])
        together.text(
            len(run.waits_s), run.wait_s, label, color=COLOURS[name], ha="right", va="bottom"
        )
    each.set_title(f"Training waits for data\n{storage}", fontsize=10)
    each.set_ylabel("wait of each step, ms")
    together.set_ylabel("waited so far, s")
    together.set_xlabel("step")
    for axes in (each, together):
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
