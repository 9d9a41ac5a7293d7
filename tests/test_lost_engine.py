"""An engine that is killed costs speed and one warning: no sample, and no order."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import prismaio
import pytest
from conftest import Eventually
from prismaio import connection, launch


def kill_engine(prisma: prismaio.Prisma, eventually: Eventually) -> int:
    client = prisma._connection.client()
    assert client is not None
    os.kill(client.engine_pid, signal.SIGKILL)
    eventually(lambda: not client.engine_lives, "the end of the engine")
    return client.engine_pid


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks for another engine just because time has passed."""
    monkeypatch.setattr(connection, "_RETRY_AFTER_S", 1e9)


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("at", [0, 1, 100, 299])
def test_a_killed_engine_costs_no_sample_and_one_warning(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually, at: int
) -> None:
    read = []
    ranges = [(path, start) for start in range(5) for path in files]  # more than the buffer holds
    plan = prisma.iterate(ranges)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for sample in plan:
            read.append(bytes(sample))
            if len(read) == at + 1:
                kill_engine(prisma, eventually)
    assert ["engine is gone" in str(warning.message) for warning in warned] == [True]
    assert warned[0].filename == __file__
    assert read == [path.read_bytes()[start:] for path, start in ranges]
    assert prisma.stats()["lost_engines"] == 1
    assert prisma.stats()["engine_pid"] == 0


@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.soak) for n in range(6, 50))]
)
def test_an_engine_that_is_killed_at_any_moment_costs_no_sample(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(connection, "_RETRY_AFTER_S", chance.choice([0.0, 0.02, 5.0]))
    ranges = [(path, start) for start in range(10) for path in chance.sample(files, 300)]
    with prismaio.connect(memory="2MiB", depth=4) as prisma:
        client = prisma._connection.client()
        assert client is not None
        killer = threading.Timer(
            chance.uniform(0, 0.3), os.kill, (client.engine_pid, signal.SIGKILL)
        )
        killer.start()
        for (path, start), sample in zip(ranges, prisma.iterate(ranges), strict=True):
            assert bytes(sample) == path.read_bytes()[start:]
        killer.join()


def test_threads_lose_one_engine_together(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually
) -> None:
    expected = [path.read_bytes() for path in files]
    barrier = threading.Barrier(5)

    def read() -> list[bytes]:
        plan = prisma.iterate(files)
        first = bytes(next(plan))
        barrier.wait()
        barrier.wait()  # the engine is gone
        rest = [bytes(sample) for sample in plan]
        return [first, *rest, *(bytes(sample) for sample in prisma.iterate(files))]

    with warnings.catch_warnings(record=True) as warned, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        readers = [pool.submit(read) for _ in range(4)]
        barrier.wait()
        kill_engine(prisma, eventually)
        barrier.wait()
        assert all(reader.result() == expected * 2 for reader in readers)
    assert len(warned) == 1
    assert prisma.stats()["lost_engines"] == 1
    assert prisma.stats()["engine_pid"] > 0


def test_while_one_thread_looks_for_an_engine_the_others_read(
    prisma: prismaio.Prisma, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go_on = threading.Event(), threading.Event()

    def slowly(*args: Any, **more: Any) -> Any:
        looking.set()
        assert go_on.wait(30)
        return attach(*args, **more)

    attach = launch.attach
    monkeypatch.setattr(launch, "attach", slowly)
    with pickle.loads(pickle.dumps(prisma)) as other, ThreadPoolExecutor(2) as pool:
        first = pool.submit(other.read, files[1])
        assert looking.wait(30)
        second = pool.submit(other.read, files[2])
        try:
            assert bytes(second.result(10)) == files[2].read_bytes()
        finally:
            go_on.set()
        assert bytes(first.result()) == files[1].read_bytes()
        assert other.stats()["engine_pid"] == prisma.stats()["engine_pid"]


@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
def test_a_child_forked_after_the_loss_starts_an_engine_that_its_parent_joins(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually
) -> None:
    kill_engine(prisma, eventually)
    inlet, outlet = os.pipe()
    go, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(outlet, str(prisma.stats()["engine_pid"]).encode())
        os.read(go, 1)  # stays, and so does the engine
        os._exit(0)
    started = int(os.read(inlet, 20))
    assert started > 0
    prisma.iterate(files)
    joined = prisma.stats()["engine_pid"]
    os.write(tell, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert joined == started
    for end in (inlet, outlet, go, tell):
        os.close(end)


def test_a_program_that_is_its_containers_init_leaves_no_zombie(files: list[Path]) -> None:
    text = (
        "import ctypes, os, prismaio, signal, sys\n"
        "from pathlib import Path\n"
        "ctypes.CDLL(None).prctl(36, 1)  # orphans become children of this process\n"
        "listed = Path(f'/proc/self/task/{os.getpid()}/children')\n"
        "def children(): return listed.read_text().split()\n"
        "prisma = prismaio.connect(memory='4MiB')\n"
        "client = prisma._connection.client()\n"
        "assert children() == [str(client.engine_pid)]\n"
        "os.kill(client.engine_pid, signal.SIGKILL)\n"
        "os.waitid(os.P_PID, client.engine_pid, os.WEXITED | os.WNOWAIT)\n"
        "next(prisma.iterate(sys.argv[1:]))\n"
        "assert children() == [str(prisma.stats()['engine_pid'])]\n"
        "del client; prisma.close()\n"
        "assert children() == []\n"
    )
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text, *map(str, files)], check=True, timeout=30
    )


@pytest.mark.usefixtures("_patient")
@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
def test_the_next_iteration_has_another_engine(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually
) -> None:
    prisma.tune(depth=3)
    killed = kill_engine(prisma, eventually)
    counted = prisma.stats()
    assert [bytes(s) for s in prisma.iterate(files)] == [path.read_bytes() for path in files]
    assert prisma.stats()["engine_pid"] not in (0, killed)
    assert prisma.stats()["hits"] + prisma.stats()["lates"] + prisma.stats()["misses"] > 0
    assert prisma.stats()["taken_bytes"] > counted["taken_bytes"]
    eventually(lambda: prisma.stats()["depth"] == 3, "the knobs that were set")


@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
def test_a_running_iteration_has_another_engine_after_a_while(
    prisma: prismaio.Prisma,
    files: list[Path],
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = prisma.iterate(files * 20)
    read = [bytes(next(plan))]
    killed = kill_engine(prisma, eventually)
    real = time.monotonic
    passed_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: real() + passed_s)
    while prisma.stats()["lost_engines"] == 0:  # what lies ready is still taken
        read.append(bytes(next(plan)))
    read.extend(bytes(next(plan)) for _ in range(10))
    assert prisma.stats()["engine_pid"] == 0
    passed_s = 5.0
    sample = next(plan)
    read.append(bytes(sample))
    assert prisma.stats()["engine_pid"] not in (0, killed)
    taken = prisma.stats()["taken_bytes"]
    read.extend(bytes(sample) for sample in plan)
    assert read == [path.read_bytes() for path in files * 20]
    assert prisma.stats()["taken_bytes"] > taken


@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
def test_a_plan_by_path_goes_on_with_another_engine(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually
) -> None:
    plan = prisma.plan()
    plan.announce(files[:10])
    kill_engine(prisma, eventually)
    assert bytes(prisma.read(files[5])) == files[5].read_bytes()
    prisma._connection.renew()
    plan.announce(files[10:20])
    plan.settle()
    sample = prisma.take(files[15])
    assert sample is not None
    assert bytes(sample) == files[15].read_bytes()


@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
def test_who_only_takes_by_name_notices_too_and_has_another_engine_after_a_while(
    prisma: prismaio.Prisma,
    files: list[Path],
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed = kill_engine(prisma, eventually)
    monkeypatch.setattr(connection, "_RETRY_AFTER_S", 0.1)

    def joined_another() -> bool:
        assert prisma.take(files[3]) is None
        return prisma.stats()["engine_pid"] not in (0, killed)

    eventually(joined_another, "another engine")
    assert prisma.stats()["lost_engines"] == 1


@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
def test_the_processes_of_a_session_meet_again(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually
) -> None:
    other = pickle.loads(pickle.dumps(prisma))
    assert other.stats()["engine_pid"] == prisma.stats()["engine_pid"]
    kill_engine(prisma, eventually)
    with prisma.plan() as plan, other.plan():
        assert other.stats()["engine_pid"] == prisma.stats()["engine_pid"]
        plan.announce(files[:5])
        plan.settle()
        assert bytes(other.take(files[3])) == files[3].read_bytes()
    other.close()


@pytest.fixture
def _no_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python3")


@pytest.mark.usefixtures("_no_engines")
def test_where_no_engine_can_be_had_all_is_read_directly_after_one_warning(
    files: list[Path],
) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        prisma = prismaio.connect()
        for _ in range(3):
            assert [bytes(s) for s in prisma.iterate(files)] == [p.read_bytes() for p in files]
    (warning,) = warned
    assert "directly, nothing is read ahead: cannot start" in str(warning.message)
    assert warning.filename == __file__
    assert prisma.stats()["direct_reads"] == 900
    prisma.close()


def test_a_named_engine_that_is_not_there_is_an_error() -> None:
    with pytest.raises(prismaio.PrismaError, match="nobody-there"):
        prismaio.connect(engine="nobody-there")


def test_a_named_engine_is_joined_and_none_is_started_in_its_place(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually
) -> None:
    meeting = prisma._connection.meeting()
    assert meeting is not None
    with prismaio.connect(engine=meeting.address) as guest:
        assert guest.stats()["engine_pid"] == prisma.stats()["engine_pid"]
        kill_engine(prisma, eventually)
        with pytest.warns(RuntimeWarning, match="engine is gone") as warned:
            read = [bytes(sample) for sample in guest.iterate(files)]
        assert len(warned) == 1
        assert read == [path.read_bytes() for path in files]
        assert guest.stats()["engine_pid"] == 0


def test_the_off_switch_gives_the_same_without_an_engine(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRISMAIO_DISABLE", "1")
    with warnings.catch_warnings(), prismaio.connect() as prisma:
        warnings.simplefilter("error")
        read = [(s.position, bytes(s), s.path) for s in prisma.iterate(files)]
        assert read == [(n, p.read_bytes(), os.fsencode(p)) for n, p in enumerate(files)]
        assert bytes(prisma.read(files[9], 3, 5)) == files[9].read_bytes()[3:8]
        with prisma.open(files[9]) as file:
            assert file.read() == files[9].read_bytes()
        with prisma.plan() as plan:
            plan.announce(files)
            plan.settle()
            assert prisma.take(files[3]) is None
        prisma.tune(depth=3)
        with pytest.raises(FileNotFoundError) as failure:
            prisma.read(tmp_path / "absent")
        assert failure.value.filename == str(tmp_path / "absent")
        skipping = prisma.iterate([tmp_path, files[1]], on_error="skip")
        assert [len(sample) for sample in skipping] == [100]
        assert prisma.stats()["direct_reads"] == 302
        assert prisma.stats()["engine_pid"] == 0
        with prismaio.connect(disable=False) as enabled:
            assert prisma.stats().keys() == enabled.stats().keys()


def test_every_figure_of_a_client_is_there_without_one(prisma: prismaio.Prisma) -> None:
    client = prisma._connection.client()
    assert client is not None
    assert set(client.counters()) == {*connection._OWN, *connection._ENGINES}


@pytest.mark.filterwarnings("ignore:PRISMA. its engine is gone")
def test_an_engine_that_was_stopped_is_not_waited_for(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    plan = prisma.iterate(files[at % len(files)] for at in range(5000))
    read = [bytes(next(plan))]
    stopped = prisma.stats()["engine_pid"]
    os.kill(stopped, signal.SIGSTOP)
    try:
        read += [bytes(sample) for sample in plan]
        assert [bytes(sample) for sample in prisma.iterate(files)] == read[: len(files)]
        assert prisma.stats()["engine_pid"] != stopped
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert read == [files[at % len(files)].read_bytes() for at in range(5000)]
