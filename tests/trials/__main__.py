"""A process that runs a batch of cases: python -m trials SUITE --seed N CASE...

With --fd it answers there, a line of JSON per case; otherwise it prints, for people.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from trials.all_suites import suite_named
from trials.suite import Case, Suite


def main() -> int:
    """Runs the cases; 1 if one of them failed and people were told."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    options = _options()
    suite_type = suite_named(options.suite)
    with tempfile.TemporaryDirectory() as made:
        suite = suite_type(Path(options.folder or made), options.seed)
        with suite.stack:
            suite.prepare()
            _tell(options.fd, {"ready": True})
            failed = [_run(suite, options, number) for number in options.cases]
    return int(any(failed) and options.fd is None)


def _run(suite: Suite, options: argparse.Namespace, number: int) -> bool:
    """Runs one case; whether it failed."""
    start = time.monotonic()
    failure = ""
    try:
        suite.run(Case(suite.name, options.seed, number, options.share))
    except Exception:
        failure = traceback.format_exc()
    seconds = round(time.monotonic() - start, 3)
    _tell(options.fd, {"number": number, "seconds": seconds, "failure": failure})
    return bool(failure)


def _tell(fd: int | None, answer: dict[str, object]) -> None:
    if fd is not None:
        os.write(fd, json.dumps(answer).encode() + b"\n")
    elif "ready" not in answer:
        verdict = answer["failure"] or "ok"
        print(f"case {answer['number']}: {verdict} ({answer['seconds']} s)", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trials", description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("cases", nargs="+", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--folder")
    parser.add_argument("--fd", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
