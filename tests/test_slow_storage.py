"""prismaio.testing.SlowStorage: slow as asked, honest in what it counts, gone when its block is."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from conftest import Eventually
from prismaio.testing import Slowness, SlowStorage

pytestmark = pytest.mark.skipif(
    SlowStorage.available() is not None, reason=str(SlowStorage.available())
)

ODD_NAMES = [b"plain", b"with blank", b"percent%41", b"\xff\xfe\x01", "ä€".encode(), b"a=b", b"-x"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Thirty files of 20,000 bytes, no two alike."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02}.bin").write_bytes(f"{number:05}".encode() * 4000)
    return folder


def read(path: Path) -> bytes:
    """One open, one read that takes all, one that finds the end."""
    with path.open("rb", buffering=0) as file:
        return file.readall()


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def is_mounted(path: Path) -> bool:
    return os.fsencode(path) in Path("/proc/self/mountinfo").read_bytes()


def started(code: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE
    )


def mount_of_another_process(source: Path, folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A program that mounts and then waits for ever; where it mounted."""
    code = (
        "import sys, signal\n"
        "from prismaio.testing import SlowStorage\n"
        "with SlowStorage(sys.argv[1]) as slow:\n"
        "    print(slow.path, flush=True)\n"
        "    signal.pause()\n"
    )
    program = started(code, source)
    assert program.stdout is not None
    return program, Path(program.stdout.readline().decode().strip())


def serving(path: Path) -> list[int]:
    """The processes that serve a mount."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"prisma-slowfs") and os.fsencode(path) in words:
            found.append(int(folder.name))
    return found


# Same names, same bytes


def test_names_of_any_bytes_and_files_of_any_size_are_passed_through(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    sizes = [0, 1, 4096, 131072, 131073, 3_000_001, 17]
    for name, size in zip(ODD_NAMES, sizes, strict=True):
        (source / "deep" / "er" / os.fsdecode(name)).write_bytes(os.urandom(size))
    (source / "link").symlink_to("deep/er/plain")
    with SlowStorage(source) as slow:
        seen = [path.relative_to(slow.path) for path in sorted(slow.path.rglob("*"))]
        assert seen == [path.relative_to(source) for path in sorted(source.rglob("*"))]
        for path in seen:
            if (source / path).is_file():
                assert read(slow.path / path) == read(source / path)
                assert (slow.path / path).stat().st_size == (source / path).stat().st_size
        assert set(slow.opens()) == {b"deep/er/" + name for name in ODD_NAMES}


def test_nothing_can_be_written_through_it(source: Path) -> None:
    with SlowStorage(source) as slow, pytest.raises(OSError) as failure:  # noqa: PT011
        (slow.path / "new").write_bytes(b"x")
    assert failure.value.errno == errno.EROFS


def test_a_missing_file_is_missing(source: Path) -> None:
    with SlowStorage(source) as slow, pytest.raises(FileNotFoundError):
        read(slow.path / "absent")


def test_a_file_that_grew_is_seen_whole_once_sizes_are_not_remembered(source: Path) -> None:
    with SlowStorage(source, attr_timeout_s=0) as slow:
        read(slow.path / "00.bin")
        (source / "00.bin").write_bytes(b"x" * 100_000)
        assert len(read(slow.path / "00.bin")) == 100_000


# Slow as asked


@pytest.mark.parametrize("setting", ["open_delay_s", "read_delay_s", "stat_delay_s"])
def test_a_delay_is_as_long_as_it_was_set(source: Path, setting: str) -> None:
    slowness = cast("Slowness", {setting: 0.03, "attr_timeout_s": 0})
    with (
        SlowStorage(source, **slowness) as slow,
        (slow.path / "01.bin").open() as opened,
    ):
        actions: dict[str, Callable[[], object]] = {
            "open_delay_s": lambda: os.close(os.open(slow.path / "00.bin", os.O_RDONLY)),
            "read_delay_s": lambda: read(slow.path / "00.bin"),
            "stat_delay_s": lambda: os.fstat(opened.fileno()),
        }
        shortest = min(timed(actions[setting]) for _ in range(5))
        assert 0.03 <= shortest < 0.09  # a busy machine adds to it, and never takes away


@pytest.mark.parametrize("setting", ["open_delay_s", "read_delay_s"])
def test_any_number_of_delays_pass_at_the_same_time(tmp_path: Path, setting: str) -> None:
    for number in range(64):
        (tmp_path / str(number)).write_bytes(b"x" * 5000)
    slowness = cast("Slowness", {setting: 0.3})
    with SlowStorage(tmp_path, threads=4, **slowness) as slow, ThreadPoolExecutor(64) as pool:
        files = list(slow.path.iterdir())
        assert timed(lambda: list(pool.map(read, files))) < 6  # one after another: 19
        assert slow.counters()["requests_in_flight_max"] == 64


def test_jitter_spreads_delays_and_keeps_their_mean(source: Path) -> None:
    for kind in ("uniform", "exponential"):
        with SlowStorage(source, open_delay_s=0.01, jitter_share=1, jitter=kind, seed=5) as slow:
            files = sorted(slow.path.iterdir()) * 3
            times = [timed(partial(read, file)) for file in files]
        # A busy machine adds to each: the quarters from below say most.
        first, middle = (sorted(times)[len(times) * part // 100] for part in (10, 50))
        assert first < 0.009
        assert max(times) > 0.015
        assert 0.004 < middle < 0.02


def slow_reads(source: Path, order: list[int], seed: int) -> set[int]:
    with SlowStorage(
        source, read_delay_s=0.002, spike_share=0.25, spike_factor=25, seed=seed
    ) as slow:
        return {n for n in order if timed(partial(read, slow.path / f"{n:02}.bin")) > 0.045}


def test_spikes_meet_the_same_reads_with_the_same_seed_in_any_order(source: Path) -> None:
    forwards = slow_reads(source, list(range(30)), seed=7)
    assert 2 <= len(forwards) <= 15
    assert slow_reads(source, list(range(29, -1, -1)), seed=7) == forwards
    assert slow_reads(source, list(range(30)), seed=8) != forwards


def test_bandwidth_stays_below_its_cap(source: Path) -> None:
    with SlowStorage(source, bytes_per_s=1_000_000) as slow, ThreadPoolExecutor(8) as pool:
        files = sorted(slow.path.iterdir())
        assert 0.59 <= timed(lambda: list(pool.map(read, files))) < 3  # 600,000 bytes


def test_reads_stay_below_their_cap_and_opens_are_free(source: Path) -> None:
    with SlowStorage(source, reads_per_s=50) as slow, ThreadPoolExecutor(8) as pool:
        files = sorted(slow.path.iterdir())
        assert 0.58 <= timed(lambda: list(pool.map(read, files))) < 3
        assert timed(lambda: os.close(os.open(files[0], os.O_RDONLY))) < 0.5


def test_storage_can_become_slower_and_faster_while_it_is_used(source: Path) -> None:
    with SlowStorage(source) as slow:
        slow.change(open_delay_s=0.05, read_delay_s=0.05)
        assert timed(lambda: read(slow.path / "00.bin")) > 0.1
        slow.change(open_delay_s=0)
        assert 0.05 < timed(lambda: read(slow.path / "00.bin")) < 0.5


@pytest.mark.parametrize(
    ("setting", "value"),
    [("open_delay_s", -1), ("jitter", "gaussian"), ("jitter_share", 2), ("opn_delay_s", 1)],
)
def test_a_setting_that_makes_no_sense_is_named_and_changes_nothing(
    source: Path, setting: str, value: object
) -> None:
    slowness = cast("Slowness", {"read_delay_s": 9, setting: value})
    with SlowStorage(source) as slow:
        with pytest.raises(ValueError, match=setting):
            slow.change(**slowness)
        assert timed(lambda: read(slow.path / "00.bin")) < 5
    with pytest.raises(RuntimeError, match=setting), SlowStorage(source, **slowness):
        pass


def test_a_source_that_is_no_directory_is_named(source: Path) -> None:
    absent = source / "absent"
    with pytest.raises(RuntimeError, match=str(absent)), SlowStorage(absent):
        pass


# Cold, warm, and what is counted


def test_every_open_is_cold_unless_the_cache_may_be_kept(source: Path) -> None:
    with SlowStorage(source) as slow:
        for _ in range(3):
            read(slow.path / "00.bin")
        assert slow.counters()["reads"] == 3
        slow.reset_counters()
        slow.change(keep_cache=True)
        for _ in range(3):
            read(slow.path / "01.bin")
        assert slow.counters()["reads"] == 1


def test_direct_io_lets_every_read_call_through(source: Path) -> None:
    with SlowStorage(source, direct_io=True) as slow:
        with (slow.path / "00.bin").open("rb", buffering=0) as file:
            while file.read(5_000):
                pass
        counted = slow.counters()
        assert (counted["reads"], counted["read_bytes"]) == (5, 20_000)  # the last finds the end


def test_counters_are_exact(source: Path) -> None:
    with SlowStorage(source) as slow, ThreadPoolExecutor(8) as pool:
        names = [f"{n:02}.bin" for n in range(30)]
        for count in (30, 20, 10):  # each file once at a time: open twice, it shares its pages
            list(pool.map(lambda name: read(slow.path / name), names[:count]))
        counted = slow.counters()
        assert (counted["opens"], counted["reads"]) == (60, 60)
        assert counted["read_bytes"] == 60 * 20_000
        expected = {name: 1 + (name < "20.bin") + (name < "10.bin") for name in names}
        assert slow.opens() == {name.encode(): opens for name, opens in expected.items()}
        assert counted["readdirs"] == counted["opendirs"] == counted["errors"] == 0
        os.listdir(slow.path)  # noqa: PTH208
        assert slow.counters()["opendirs"] == 1
        assert slow.counters()["readdirs"] >= 1
        slow.reset_counters()
        assert set(slow.counters().values()) == {0}
        assert slow.opens() == {}


def test_stats_are_counted_each_once_names_are_not_remembered(source: Path) -> None:
    with SlowStorage(source, attr_timeout_s=0) as slow:
        counted = slow.counters()
        for _ in range(5):
            os.stat(slow.path / "00.bin")  # noqa: PTH116
        assert slow.counters()["lookups"] - counted["lookups"] == 5
        fd = os.open(slow.path / "00.bin", os.O_RDONLY)
        counted = slow.counters()
        for _ in range(5):
            os.fstat(fd)
        os.close(fd)
        assert slow.counters()["stats"] - counted["stats"] == 5


def test_reads_in_flight_are_seen_now_at_most_and_on_average(
    source: Path, eventually: Eventually
) -> None:
    with SlowStorage(source) as slow, ThreadPoolExecutor(4) as pool:
        with slow.hold("*", at="read"):
            reads = [pool.submit(read, slow.path / f"0{n}.bin") for n in range(4)]
            eventually(lambda: slow.counters()["reads_in_flight"] == 4)
        for future in reads:
            future.result()
        slow.reset_counters()
        slow.change(read_delay_s=0.05)
        list(pool.map(lambda n: read(slow.path / f"{n:02}.bin"), range(16)))
        counted = slow.counters()
        assert counted["reads_in_flight"] == 0
        assert counted["reads_in_flight_max"] == 4
        assert 3 < counted["reads_in_flight_mean"] <= 4


# What goes wrong on purpose


@pytest.mark.parametrize("moment", ["open", "read"])
def test_an_error_meets_the_files_that_the_pattern_matches_and_no_others(
    source: Path, moment: str
) -> None:
    with SlowStorage(source) as slow:
        fault = slow.fault("0[3-5].bin", at=moment, error=errno.EIO)  # type: ignore[arg-type]
        for number in range(10):
            path = slow.path / f"{number:02}.bin"
            if 3 <= number <= 5:
                with pytest.raises(OSError, match="Input/output error"):
                    read(path)
            else:
                assert read(path) == read(source / path.name)
        assert slow.counters()["errors"] == 3
        fault.drop()
        assert read(slow.path / "03.bin") == read(source / "03.bin")


@pytest.mark.parametrize("moment", ["open", "read"])
def test_a_transient_error_ends_after_its_number_of_times_for_each_file(
    source: Path, moment: str
) -> None:
    with SlowStorage(source) as slow:
        slow.fault("*", at=moment, error=errno.ETIMEDOUT, times=2)  # type: ignore[arg-type]
        for name in ("00.bin", "01.bin"):
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    read(slow.path / name)
            assert read(slow.path / name) == read(source / name)


def test_a_fault_matches_names_of_any_bytes(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff [1]=%")
    odd.write_bytes(b"x")
    with SlowStorage(tmp_path) as slow:
        slow.fault(b"\xff *=%", error=errno.EACCES)
        with pytest.raises(PermissionError):
            read(slow.path / odd.name)


def test_short_reads_are_short_and_lose_nothing(source: Path) -> None:
    with SlowStorage(source) as slow, slow.fault("*", at="read", short_bytes=999):
        fd = os.open(slow.path / "07.bin", os.O_RDONLY)
        pieces = list(iter(lambda: os.read(fd, 20_000), b""))
        os.close(fd)
        assert max(map(len, pieces)) == 999
        assert b"".join(pieces) == read(source / "07.bin")


def test_a_file_can_end_earlier_than_its_size_says(source: Path) -> None:
    with SlowStorage(source) as slow, slow.fault("07.bin", at="read", end_at=12_345):
        path = slow.path / "07.bin"
        assert path.stat().st_size == 20_000
        assert read(path) == read(source / "07.bin")[:12_345]


def test_one_file_can_take_long_while_others_go_on(source: Path) -> None:
    with SlowStorage(source) as slow, ThreadPoolExecutor(1) as pool:
        slow.fault("00.bin", at="read", delay_s=0.5)
        slow_one = pool.submit(timed, lambda: read(slow.path / "00.bin"))
        assert timed(lambda: read(slow.path / "01.bin")) < 0.3
        assert 0.5 <= slow_one.result() < 0.8


def test_what_is_held_goes_on_when_it_is_let_go(source: Path, eventually: Eventually) -> None:
    with SlowStorage(source) as slow, ThreadPoolExecutor(2) as pool:
        fault = slow.hold("00.bin")
        held = pool.submit(read, slow.path / "00.bin")
        eventually(lambda: slow.counters()["opens"] == 1)
        assert read(slow.path / "01.bin") == read(source / "01.bin")
        assert not held.done()
        fault.drop()
        assert held.result(5) == read(source / "00.bin")


@pytest.mark.parametrize("wait", ["hold", "delay"])
def test_a_reader_that_waits_can_be_killed(source: Path, wait: str, eventually: Eventually) -> None:
    with SlowStorage(source) as slow:
        slow.hold("*") if wait == "hold" else slow.fault("*", delay_s=30)
        reader = started("import sys; open(sys.argv[1])", slow.path / "00.bin")
        eventually(lambda: slow.counters()["opens"] == 1)
        reader.kill()
        assert reader.wait(5) == -signal.SIGKILL
        eventually(lambda: slow.counters()["requests_in_flight"] == 0)


# Gone when its block is


def test_it_unmounts_when_the_block_raises(source: Path) -> None:
    def fail() -> None:
        with SlowStorage(source) as slow:
            paths.append(slow.path)
            assert is_mounted(slow.path)
            raise ZeroDivisionError

    paths: list[Path] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    (path,) = paths
    assert not is_mounted(path)
    assert not path.exists()
    assert serving(path) == []


def test_it_unmounts_under_open_files_and_waiting_readers(
    source: Path, eventually: Eventually
) -> None:
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as block:
        slow = block.enter_context(SlowStorage(source))
        path = slow.path
        fd = os.open(path / "00.bin", os.O_RDONLY)
        slow.hold("01.bin")
        held = pool.submit(read, path / "01.bin")
        eventually(lambda: slow.counters()["opens"] == 2)
        slow.__exit__(None, None, None)
        assert not is_mounted(path)
        with pytest.raises(OSError):  # noqa: PT011
            os.read(fd, 1)
        with contextlib.suppress(OSError):
            os.close(fd)
        with pytest.raises(OSError):  # noqa: PT011
            held.result(5)
        slow.__enter__()  # for the block to leave


def test_nothing_is_left_when_its_process_is_killed(source: Path, eventually: Eventually) -> None:
    program, path = mount_of_another_process(source, source)
    assert is_mounted(path)
    program.kill()
    program.wait()
    eventually(lambda: serving(path) == [], "the end of the server")
    assert not is_mounted(path)
    assert not path.exists()


def test_nothing_is_mounted_when_the_server_is_killed(source: Path, eventually: Eventually) -> None:
    with SlowStorage(source) as slow:
        path = slow.path
        os.kill(serving(path)[0], signal.SIGKILL)
        eventually(lambda: not is_mounted(path), "the end of the mount")
        with pytest.raises(RuntimeError, match="ended with status -9"):
            slow.counters()
    assert not path.exists()


def test_an_interrupt_at_the_terminal_does_not_unmount(source: Path) -> None:
    with SlowStorage(source) as slow:
        (server,) = serving(slow.path)
        assert os.getsid(server) != os.getsid(0)


def test_a_forked_child_that_leaves_the_block_does_not_unmount(source: Path) -> None:
    with SlowStorage(source) as slow:
        child = os.fork()
        if child == 0:
            slow.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert read(slow.path / "00.bin") == read(source / "00.bin")


def test_it_outlives_the_thread_that_mounted_it(source: Path) -> None:
    slow = SlowStorage(source)
    thread = threading.Thread(target=slow.__enter__)
    thread.start()
    thread.join()
    try:
        assert read(slow.path / "00.bin") == read(source / "00.bin")
    finally:
        slow.__exit__(None, None, None)


def test_outside_its_block_it_says_so(source: Path) -> None:
    slow = SlowStorage(source)
    with pytest.raises(ValueError, match="while its block runs"):
        slow.counters()
    with slow, pytest.raises(ValueError, match="mounted already"):
        slow.__enter__()


def test_it_says_why_it_is_not_available(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    monkeypatch.setenv("PRISMAIO_SLOWFS", str(source / "absent"))
    assert str(source / "absent") in str(SlowStorage.available())
    with pytest.raises(RuntimeError, match="absent"), SlowStorage(source):
        pass
    monkeypatch.delenv("PRISMAIO_SLOWFS")
    monkeypatch.setenv("PATH", str(source))
    assert "fusermount3" in str(SlowStorage.available())


@pytest.fixture(autouse=True)
def no_mount_is_left(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """After each test, whatever it was about: of ours, which lie in a folder of their own."""
    ours = tmp_path_factory.mktemp("mounts")
    monkeypatch.setattr(tempfile, "tempdir", str(ours))
    monkeypatch.setenv("TMPDIR", str(ours))  # for other processes
    yield
    assert os.fsencode(ours) not in Path("/proc/self/mountinfo").read_bytes()
