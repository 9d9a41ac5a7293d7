"""The bench itself: a small row runs, and the numbers that it rests on are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from prismaio.testing import SlowStorage, residency

from benchmarks import building, memory, meter, running, workload
from benchmarks.building import ROOT
from benchmarks.dataset import DataSet, provide
from benchmarks.job import Job, write_list
from benchmarks.storage import StorageError, rawread, storage_of

needs_tomllib = pytest.mark.skipif(sys.version_info < (3, 11), reason="workloads are TOML")

SPIN = """
import os, sys, time
def spin(seconds):
    while time.process_time() < seconds: pass
"""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    building.build("prisma-rawread", "prisma_touch")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRISMAIO_BENCH_DATA", str(tmp_path / "data"))
    return provide(DataSet(files=20, mean_bytes=30_000))


def listed(data: Path, tmp_path: Path) -> Path:
    paths = [str(path) for path in sorted(data.glob("*/*.bin"))]
    write_list(tmp_path / "list", paths)
    return tmp_path / "list"


def python(program: str) -> list[str]:
    return [sys.executable, "-c", SPIN + program]


def run_quickly(row: str, tmp_path: Path, *words: str) -> dict[str, Any]:
    """What one command finds when it runs a row with little data."""
    command = [sys.executable, "-m", "benchmarks", row, "--quick", "--results", str(tmp_path)]
    environment = {"PRISMAIO_BENCH_DATA": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*command, *words], cwd=ROOT, env=environment, check=False, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((tmp_path / f"{row}.json").read_text())
    assert found["absent"] == {}
    assert all(bar["says"] in done.stdout for bar in found["bars"])
    return found


@needs_tomllib
@pytest.mark.timeout(180)
def test_one_command_runs_a_small_row_and_leaves_its_figures(tmp_path: Path) -> None:
    found = run_quickly("cold-110k", tmp_path, "--only", "prisma,plain")
    assert found["same_bytes"] == {"prisma": True, "plain": True}
    figures = {name: rounds["0"] for name, rounds in found["figures"].items()}
    assert set(figures) == {"limit:1", "limit:64", "prisma", "plain"}
    assert len({one["bytes"] for one in figures.values()}) == 1
    assert figures["prisma"]["first_s"] <= figures["prisma"]["wall_s"]
    assert figures["prisma"]["reads_in_flight_max"] >= 1
    assert all(one["resident_before"] <= 0.001 for one in figures.values())


@needs_tomllib
@pytest.mark.timeout(180)
@pytest.mark.skipif(SlowStorage.available() is not None, reason=str(SlowStorage.available()))
def test_many_consumers_get_all_from_the_buffer_of_one_engine(tmp_path: Path) -> None:
    found = run_quickly("consumers", tmp_path)
    few, many = (found["figures"][name]["0"] for name in ("consumers:4", "consumers:16"))
    assert few["bytes"] == many["bytes"] > 0
    assert few["direct"] == many["direct"] == 0
    assert few["storage_opens"] == many["storage_opens"] == few["samples"]
    assert len(found["bars"][0]["values"]) == 1


def test_memory_is_told_apart_from_what_an_idle_engine_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRISMAIO_BENCH_DATA", str(tmp_path / "data"))
    data = provide(DataSet(files=600, mean_bytes=110_000))
    files = listed(data, tmp_path)
    job = Job(contender="prisma", listed=str(files), memory="8MiB")
    found = running.remembered(job, storage_of("cold")(data, files, {}))
    assert found["processes"] >= 2
    assert 4 < found["peak_above_attached_mib"] < found["peak_mib"]
    assert found["memory_over_budget_mib"] == pytest.approx(found["peak_above_attached_mib"] - 8)


def test_cpu_of_a_command_its_children_and_its_orphans_is_counted() -> None:
    program = """
if os.fork():
    os.wait()       # a child that is waited for
    spin(0.2)
elif os.fork():
    spin(0.2)       # which leaves behind ...
else:
    os.setsid()
    os.close(1)
    os.close(2)
    spin(0.4)       # ... an orphan that goes on longer
"""
    finished = meter.run(python(program), cwd=ROOT, timeout_s=20)
    assert finished.status == 0, finished.complaints
    assert finished.left_over == []
    assert 0.4 <= finished.cpu_s < 1.2
    assert 0.4 <= finished.orphans_cpu_s < 1.2


def test_a_command_that_hangs_is_ended() -> None:
    finished = meter.run(python("import signal; signal.pause()"), cwd=ROOT, timeout_s=0.5)
    assert finished.status == -9


def test_an_interrupt_ends_the_command_too() -> None:
    before = meter.children()
    program = "import signal; print('up', flush=True); signal.pause()"

    def interrupt(line: str, answer: meter.Answer) -> None:
        assert line == "up"
        assert len(meter.children() - before) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        meter.run(python(program), cwd=ROOT, timeout_s=20, on_line=interrupt)
    assert meter.children() == before


def test_what_a_command_leaves_running_is_found_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "_ORPHANS_END_WITHIN_S", 0.2)
    program = """
import signal
if not os.fork():
    os.setsid()
    os.close(1)
    os.close(2)
    signal.pause()
"""
    finished = meter.run(python(program), cwd=ROOT, timeout_s=20)
    assert len(finished.left_over) == 1
    assert not Path(f"/proc/{finished.left_over[0]}").exists()


def test_memory_counts_private_pages_of_each_process_and_shared_files_once() -> None:
    program = """
import mmap
fd = os.memfd_create("shared")
os.ftruncate(fd, 64 << 20)
print("attached", flush=True)
sys.stdin.readline()
shared = mmap.mmap(fd, 64 << 20)
shared.write(bytes(16 << 20))              # 16 MiB that two processes see ...
ours, theirs = os.pipe(), os.pipe()
child = os.fork()
private = bytearray(b"x") * (8 << 20)      # ... and 8 MiB of each one's own
if child == 0:
    seen = sum(shared[i] for i in range(0, 16 << 20, 4096))
    os.close(theirs[1])
    os.write(ours[1], b"!")
    os.read(theirs[0], 1)
    os._exit(0)
os.read(ours[0], 1)
print("grown", flush=True)
sys.stdin.readline()
os.close(theirs[1])
os.wait()
"""
    watch = memory.MemoryWatch()
    held: list[int] = []

    def on_line(line: str, answer: meter.Answer) -> None:
        held.append(watch.now_bytes())
        answer()

    with watch:
        finished = meter.run(python(program), cwd=ROOT, timeout_s=20, on_line=on_line)
    assert finished.status == 0, finished.complaints
    assert (held[1] - held[0]) / (1 << 20) == pytest.approx(32, abs=3)
    assert watch.peak_processes == 2


def test_cold_is_cold_and_warm_is_warm(data: Path, tmp_path: Path) -> None:
    files = sorted(data.glob("*/*.bin"))
    warm = storage_of("warm")(data, listed(data, tmp_path), {})
    cold = storage_of("cold")(data, listed(data, tmp_path), {})
    assert warm.prepare() == {"resident_before": 1.0}
    assert [residency(path) for path in files] == [1.0] * len(files)
    assert cold.prepare() == {"resident_before": 0.0}
    assert [residency(path) for path in files] == [0.0] * len(files)


def test_storage_that_does_not_become_cold_is_no_storage_for_a_cold_row(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = storage_of("cold")(data, listed(data, tmp_path), {})
    monkeypatch.setattr(cold, "resident_share", lambda: 0.5)
    with pytest.raises(StorageError, match="50"):
        cold.prepare()


def test_the_raw_reader_reads_every_byte(data: Path, tmp_path: Path) -> None:
    found = rawread("read", 3, listed(data, tmp_path))
    assert found["bytes"] == sum(path.stat().st_size for path in data.glob("*/*.bin"))
    assert found["samples"] == 20


def test_data_sets_are_the_same_whenever_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = []
    for name in ("one", "two"):
        monkeypatch.setenv("PRISMAIO_BENCH_DATA", str(tmp_path / name))
        folder = provide(DataSet(files=5, mean_bytes=1000))
        contents.append([path.read_bytes() for path in sorted(folder.glob("*/*.bin"))])
    assert contents[0] == contents[1]
    assert len(set(contents[0])) == 5


def test_sizes_have_the_mean_that_was_asked_for() -> None:
    sizes = DataSet(files=20_000, mean_bytes=110_000).sizes()
    assert sum(sizes) / len(sizes) == pytest.approx(110_000, rel=0.02)


@needs_tomllib
@pytest.mark.parametrize("name", workload.rows())
def test_every_row_can_be_read(name: str) -> None:
    row = workload.row(name)
    storage_of(row.storage)
    for bar in row.bars:
        assert bar.contender in row.contenders
        assert bar.against in {"", "limit", *row.contenders}
        assert bar.against != "limit" or row.limit_threads


def test_a_row_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="cold-110k"):
        workload.row("cold")
