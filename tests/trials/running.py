"""Runs cases in processes of their own: each has its time limit, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from trials.leftovers import end_all, wait_until_gone
from trials.suite import Suite

__all__ = ["Outcome", "run_cases"]

TESTS = Path(__file__).parents[1]
MARK = "PRISMA_TRIAL"  # inherited by all that a case starts
_PREPARES_WITHIN_S = 120.0
_GONE_WITHIN_S = 3.0  # what PRISMA promises


class Outcome(NamedTuple):
    """How a case went; `failure` is empty if well."""

    suite: str
    number: int
    seconds: float
    failure: str


def run_cases(
    suite: type[Suite], seed: int, numbers: Sequence[int], share: float = 1.0
) -> Iterator[Outcome]:
    """Runs these cases one after another and gives each outcome as soon as it is known."""
    waiting = list(numbers)
    while waiting:
        with _Batch(suite, seed, waiting[: suite.batch], share) as batch:
            for outcome in batch.outcomes():
                waiting.remove(outcome.number)
                yield outcome


class _Batch:
    """One process; it ends early when a case takes too long or breaks it."""

    def __init__(self, suite: type[Suite], seed: int, numbers: list[int], share: float) -> None:
        self._suite = suite
        self._waiting = numbers
        self._mark = uuid.uuid4().hex
        self._folder = Path(tempfile.mkdtemp(prefix="prismaio-trial-"))
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        inlet, outlet = os.pipe()
        command = [sys.executable, "-m", "trials", suite.name, "--seed", str(seed)]
        options = ["--share", str(share), "--folder", str(self._folder), "--fd", str(outlet)]
        kept = {name: value for name, value in os.environ.items() if _is_kept(name)}
        self._process = subprocess.Popen(
            [*command, *options, *map(str, numbers)],
            env=kept | {MARK: self._mark, "PYTHONPATH": _search_path()},
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=[outlet],
            start_new_session=True,
        )
        os.close(outlet)
        self._answers = os.fdopen(inlet, "rb", buffering=0)

    def outcomes(self) -> Iterator[Outcome]:
        """Of each case that ran. One that ends the process takes the blame for what is left."""
        limit_s = _PREPARES_WITHIN_S
        while True:
            start = time.monotonic()
            line = _line(self._answers, limit_s)
            limit_s = self._suite.limit_s
            if not line:
                yield self._broken(time.monotonic() - start)
                return
            answer = json.loads(line)
            if "ready" in answer:
                continue
            self._waiting.remove(answer["number"])
            if not self._waiting and not answer["failure"]:
                answer["failure"] = self._ended_badly()
            yield Outcome(self._suite.name, **answer)
            if not self._waiting:
                return

    def __enter__(self) -> _Batch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        end_all(self._mark)
        self._answers.close()
        self._said.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ended_badly(self) -> str:
        """What is wrong after the last case; empty if nothing is."""
        try:
            status = self._process.wait(20)
        except subprocess.TimeoutExpired:
            return f"all went well, but the process did not end\n{self._stacks()}"
        left = wait_until_gone(self._mark, _GONE_WITHIN_S)
        if left:
            return f"left running: {left}"
        return "" if status == 0 else f"ended with status {status}\n{self._words()}"

    def _broken(self, seconds: float) -> Outcome:
        """The next case did not answer: it takes too long, or the process is gone."""
        if self._waiting and seconds < self._suite.limit_s:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
        status = self._process.poll()
        why = f"the process ended with status {status}\n{self._words()}"
        if status is None:
            why = f"no end within {self._suite.limit_s} s\n{self._stacks()}"
        return Outcome(self._suite.name, self._waiting.pop(0), seconds, why)

    def _stacks(self) -> str:
        """Where it stands: faulthandler says so on this signal."""
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            self._process.send_signal(signal.SIGABRT)
            self._process.wait(5)
        return self._words()

    def _words(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace")[-4000:]


def _line(answers: IO[bytes], limit_s: float) -> bytes:
    """The next line, or nothing once there is none to come in time. Lines come whole."""
    readable, _, _ = select.select([answers], [], [], limit_s)
    return answers.readline() if readable else b""


def _is_kept(name: str) -> bool:
    return not name.startswith("PRISMAIO_") or name == "PRISMAIO_SLOWFS"


def _search_path() -> str:
    return os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
