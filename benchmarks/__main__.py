"""Runs rows of the table of figures. `python -m benchmarks --help`, or `make bench ARGS=--help`."""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks import building, machine, report, workload
from benchmarks.dataset import data_folder
from benchmarks.race import Race, Rounds
from benchmarks.storage import StorageError


def main(words: list[str]) -> int:
    """Runs what was asked for; 0 unless a row could not run or delivered other bytes."""
    options = _parser().parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that blocks are left in order
    if options.list:
        print("\n".join(f"{name:14} {workload.row(name).title}" for name in workload.rows()))
        return 0
    names = options.rows or workload.rows()
    building.build(*sorted({program for name in names for program in workload.row(name).programs}))
    good = [_run(name, options) for name in names]
    return 0 if all(good) else 1


def _run(name: str, options: argparse.Namespace) -> bool:
    wanted = workload.row(name)
    if options.only:
        wanted = replace(wanted, contenders=tuple(options.only.split(",")))
    rounds = Rounds(
        seed=options.seed,
        least=options.rounds,
        most=max(options.rounds, options.most),
        quiet_s=options.quiet,
    )
    if options.quick:
        wanted, rounds = wanted.quick(), Rounds(seed=options.seed, least=1, most=1, scouting=1)
    about = machine.described(data_folder().parent)
    try:
        outcome = Race(wanted, rounds, _say if options.verbose else _hush).run()
    except StorageError as reason:
        print(f"{name}: left out: {reason}\n")
        return False
    print(report.table(outcome))
    print(report.machine_line(outcome, about))
    print(f"[{report.save(outcome, about, options.results)}]\n", flush=True)
    return all(outcome.same_bytes.values())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _hush(line: str) -> None:
    return


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="which rows; all by default")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    parser.add_argument("--quick", action="store_true", help="little data, once: a smoke test")
    parser.add_argument("--only", metavar="A,B", help="run these contenders (and the limit)")
    parser.add_argument("--rounds", type=int, default=5, help="at least so many (5)")
    parser.add_argument("--most", type=int, default=30, help="at most so many (30)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of contenders (1)")
    parser.add_argument(
        "--quiet", type=float, default=0, metavar="S", help="wait so long for a quiet machine (0)"
    )
    parser.add_argument("--verbose", "-v", action="store_true", help="say what happens")
    parser.add_argument(
        "--results",
        type=Path,
        default=building.FOLDER / "results",
        help="where the JSON goes (build/bench/results)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
