"""Runs all trials: many seeded cases of what PRISMA promises. Takes up where it stopped.

python tools/soak.py                                 all suites, from where the last run stopped
python tools/soak.py kill-engine faults              only these
python tools/soak.py --seed 7                        other cases
python tools/soak.py kill-engine --seed 7 --case 12  this one case again
python tools/soak.py --fresh                         forgets what was run
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from trials.all_suites import SUITES  # noqa: E402
from trials.running import Outcome, run_cases  # noqa: E402
from trials.suite import Suite  # noqa: E402


class Record:
    """What has been run, a line per case in a file, for one seed and one state of the sources."""

    def __init__(self, file: Path, *, fresh: bool = False) -> None:
        self._file = file
        self.outcomes: list[Outcome] = []
        file.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            file.unlink(missing_ok=True)
        if file.exists():
            self.outcomes = list(_read(file))
            lines = [json.dumps(outcome._asdict()) + "\n" for outcome in self.outcomes]
            file.write_text("".join(lines))  # without what was cut off

    def add(self, outcome: Outcome) -> None:
        """Known from now on, whatever happens to this process."""
        self.outcomes.append(outcome)
        with self._file.open("a") as file:
            file.write(json.dumps(outcome._asdict()) + "\n")

    def of(self, suite: str) -> list[Outcome]:
        """What was run of a suite."""
        return [outcome for outcome in self.outcomes if outcome.suite == suite]


def _read(file: Path) -> Iterator[Outcome]:
    for line in file.read_text().splitlines(keepends=True):
        if line.endswith("\n"):  # else it was cut off with the process that wrote it
            yield Outcome(**json.loads(line))


def soak(suites: list[type[Suite]], seed: int, record: Record) -> None:
    """Runs what is not recorded yet."""
    for suite in suites:
        done = {outcome.number for outcome in record.of(suite.name)}
        waiting = [number for number in range(suite.cases) if number not in done]
        reason = suite.reason_against()
        if reason is not None:
            print(f"{suite.name}: left out: {reason}")
            continue
        failed = sum(bool(outcome.failure) for outcome in record.of(suite.name))
        for outcome in run_cases(suite, seed, waiting):
            record.add(outcome)
            done.add(outcome.number)
            if outcome.failure:
                failed += 1
                _clear_line()
                print(f"{suite.name} {outcome.number} failed: {_last_line(outcome.failure)}")
            _show(f"{suite.name}: {len(done)} of {suite.cases}, {failed} failed")
        _clear_line()
        print(_line_of(suite.name, record.of(suite.name)), flush=True)


def summary(record: Record, seed: int, names: list[str], version: str) -> str:
    """What can be quoted: cases, failures with the command that reruns each, time."""
    outcomes = [outcome for outcome in record.outcomes if outcome.suite in names]
    failures = [outcome for outcome in outcomes if outcome.failure]
    lines = [f"soak, seed {seed}, {version}", ""]
    lines += [_line_of(name, record.of(name)) for name in names]
    lines += ["", _line_of("all", outcomes)]
    for outcome in failures:
        command = f"make soak ARGS='{outcome.suite} --seed {seed} --case {outcome.number}'"
        lines += ["", f"{command}   # {_last_line(outcome.failure)}"]
    return "\n".join(lines)


def run_one(suite: type[Suite], seed: int, number: int) -> int:
    """Runs a case again and prints what came of it."""
    (outcome,) = run_cases(suite, seed, [number])
    print(
        f"{suite.name} {number}, seed {seed}: {outcome.failure or 'ok'} ({outcome.seconds:.2f} s)"
    )
    print(f"in this terminal: cd tests && python -m trials {suite.name} --seed {seed} {number}")
    return int(bool(outcome.failure))


def version_of_sources() -> str:
    """The commit, and whether something was changed since."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.strip()


def _line_of(name: str, outcomes: list[Outcome]) -> str:
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return f"{name:<14}{len(outcomes):>6} cases{failed:>5} failed{seconds:>9.1f} s"


def _last_line(failure: str) -> str:
    return failure.strip().splitlines()[-1][:200]


def _show(text: str) -> None:
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)


def _clear_line() -> None:
    _show("")


def main(words: list[str]) -> int:
    """Runs what is asked for; 1 if anything failed."""
    options = _options(words)
    names = options.suites or list(SUITES)
    if options.case is not None:
        return run_one(SUITES[names[0]], options.seed, options.case)
    version = version_of_sources()
    file = options.state / f"{version}-seed-{options.seed}.jsonl"
    record = Record(file, fresh=options.fresh)
    if record.outcomes:
        print(f"{len(record.outcomes)} cases are in {file} already; --fresh forgets them")
    start = time.monotonic()
    try:
        soak([SUITES[name] for name in names], options.seed, record)
    except KeyboardInterrupt:
        _clear_line()
        print("interrupted: the same command goes on from here")
        return 130
    text = summary(record, options.seed, names, version)
    file.with_suffix(".txt").write_text(text + "\n")
    print(f"\n{text}\n\nthis run took {time.monotonic() - start:.0f} s; all of it is in {file}")
    return int(any(outcome.failure for name in names for outcome in record.of(name)))


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run only this case of the one suite named")
    parser.add_argument("--fresh", action="store_true", help="forget what was run before")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "soak", metavar="FOLDER")
    options = parser.parse_args(words)
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"no suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    if options.case is not None and len(options.suites) != 1:
        parser.error("--case needs the one suite that it is a case of")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
