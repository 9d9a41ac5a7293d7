"""Trials find what goes wrong, whatever it is, and a soak takes up where it stopped."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from trials.running import Outcome, run_cases
from trials.suite import Case, Suite

SOAK = Path(__file__).parents[1] / "tools" / "soak.py"


class Troubled(Suite):
    """Cases that go wrong in every way."""

    name = "test_soak:Troubled"
    cases = 6
    limit_s = 2
    batch = 6

    def run(self, case: Case) -> None:
        ways: list[Callable[[], object]] = [
            lambda: None,
            lambda: [][case.number],
            signal.pause,
            lambda: os._exit(3),
            lambda: None,
            lambda: subprocess.Popen(["sleep", "60"], start_new_session=True),
        ]
        ways[case.number]()


def test_each_kind_of_trouble_is_a_failure_of_its_own_case() -> None:
    outcomes = {outcome.number: outcome.failure for outcome in run_cases(Troubled, 0, range(6))}
    assert [number for number, failure in outcomes.items() if failure] == [1, 2, 3, 5]
    assert "IndexError: list index out of range" in outcomes[1]
    assert "no end within 2 s" in outcomes[2]
    assert "in run" in outcomes[2]  # where it stood
    assert "ended with status 3" in outcomes[3]
    assert "left running" in outcomes[5]
    assert "sleep 60" in outcomes[5]


def test_a_case_is_all_that_its_seed_and_number_say() -> None:
    draws = [Case("one", seed, number).chance().random() for seed in (0, 1) for number in (0, 1)]
    assert len(set(draws)) == 4
    assert Case("one", 1, 1).chance().random() == draws[3]


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool, with one suite of five cases, of which the fourth fails."""
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    assert spec is not None
    assert spec.loader is not None
    tool: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.ran = []

    def run(suite: type[Suite], seed: int, numbers: Sequence[int]) -> Iterator[Outcome]:
        for number in numbers:
            tool.ran.append((seed, number))
            if number == tool.interrupted_at:
                raise KeyboardInterrupt
            yield Outcome(suite.name, number, 0.25, "first\nwhy it fails" if number == 3 else "")

    tool.interrupted_at = None
    monkeypatch.setattr(Troubled, "cases", 5)
    monkeypatch.setattr(tool, "SUITES", {Troubled.name: Troubled})
    monkeypatch.setattr(tool, "run_cases", run)
    monkeypatch.setattr(tool, "version_of_sources", lambda: "a1b2")
    return tool


def test_a_soak_that_was_interrupted_goes_on_where_it_stopped(
    soak: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soak.interrupted_at = 2
    assert soak.main(["--state", str(tmp_path)]) == 130
    soak.interrupted_at, soak.ran = None, []
    assert soak.main(["--state", str(tmp_path)]) == 1
    assert soak.ran == [(0, 2), (0, 3), (0, 4)]
    soak.ran = []
    assert soak.main(["--state", str(tmp_path)]) == 1
    assert soak.ran == []
    assert soak.main(["--state", str(tmp_path), "--seed", "7"]) == 1
    assert len(soak.ran) == 5
    assert soak.main(["--state", str(tmp_path), "--fresh"]) == 1
    assert len(soak.ran) == 10
    assert "the same command goes on from here" in capsys.readouterr().out


def test_a_record_that_was_cut_off_is_read_up_to_there(soak: Any, tmp_path: Path) -> None:
    file = tmp_path / "a1b2-seed-0.jsonl"
    line = json.dumps(Outcome(Troubled.name, 0, 1.0, "")._asdict())
    file.write_text(line + "\n" + line[:20])
    soak.main(["--state", str(tmp_path)])
    assert [number for _, number in soak.ran] == [1, 2, 3, 4]
    assert len(file.read_text().splitlines()) == 5


def test_the_summary_names_what_failed_and_what_reruns_it(
    soak: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soak.main(["--state", str(tmp_path)])
    said = capsys.readouterr().out
    assert "     5 cases    1 failed      1.2 s" in said
    assert f"make soak ARGS='{Troubled.name} --seed 0 --case 3'   # why it fails" in said
    assert said.count("--case") == 1
    assert (tmp_path / "a1b2-seed-0.txt").read_text() in said


def test_what_does_not_exist_is_named() -> None:
    done = subprocess.run(
        [sys.executable, SOAK, "kill-engin"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no suite 'kill-engin'; there are random" in done.stderr
