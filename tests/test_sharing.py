"""Children of every kind join the engine of their program, and disturb nobody."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import prismaio
import pytest
from conftest import Eventually, is_alive
from prismaio import program

EXECUTED = """
import json, prismaio, sys
with prismaio.connect() as prisma:
    same = bytes(prisma.read(sys.argv[1])) == open(sys.argv[1], "rb").read()
    print(json.dumps([prisma.stats()["engine_pid"], same]))
"""


def in_child(work: Callable[[], bool]) -> bool:
    """Whether work is true in a forked child that ends well."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def read_all(prisma: prismaio.Prisma, paths: list[Path]) -> bool:
    """Whether these come as they are, most of them as an engine knows or has let them be read."""
    same = [bytes(sample) for sample in prisma.iterate(paths)] == [p.read_bytes() for p in paths]
    stats = prisma.stats()
    planned = sum(stats[name] for name in ("hits", "lates", "misses", "asides"))
    return same and planned > len(paths) / 2


def pid_and_whether_all_came(
    prisma: prismaio.Prisma, paths: list[Path], session: int
) -> tuple[int, bool]:
    """What a worker does; importable, for those that are spawned."""
    client = prisma._connection.client()
    assert client is not None
    return client.engine_pid, client.session == session and read_all(prisma, paths)


@pytest.mark.parametrize("used_before", [False, True])
def test_a_forked_child_joins_the_engine_and_its_parent_notices_nothing(
    prisma: prismaio.Prisma, files: list[Path], used_before: bool
) -> None:
    plan = prisma.iterate(files)
    first = [bytes(next(plan))] if used_before else []
    pid = prisma.stats()["engine_pid"]
    assert in_child(lambda: read_all(prisma, files) and prisma.stats()["engine_pid"] == pid)
    rest = [bytes(sample) for sample in plan]
    assert first + rest == [path.read_bytes() for path in files]
    assert prisma.stats()["direct_reads"] == 0


def test_an_iteration_goes_on_in_a_forked_child_as_in_its_parent(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    plan = prisma.iterate(files)
    next(plan)
    expected = [path.read_bytes() for path in files[1:]]
    assert in_child(lambda: [bytes(sample) for sample in plan] == expected)
    assert [bytes(sample) for sample in plan] == expected


def test_views_held_at_a_fork_stay_right_on_both_sides(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    held = [next(prisma.iterate(files[at:])) for at in (100, 200)]
    expected = [files[at].read_bytes() for at in (100, 200)]
    assert in_child(lambda: read_all(prisma, files) and [bytes(one) for one in held] == expected)
    assert [bytes(one) for one in held] == expected


def test_a_fork_while_another_thread_reads_leaves_no_lock(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    ended = threading.Event()

    def read_on() -> None:
        while not ended.is_set():
            for _ in prisma.iterate(files):
                pass

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        assert all(in_child(lambda: read_all(prisma, files[:50])) for _ in range(5))
    finally:
        ended.set()
        reader.join()


def test_a_child_that_closes_its_copy_closes_nothing_of_its_parents(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    def close() -> bool:
        prisma.close()
        return True

    plan = prisma.iterate(files)
    next(plan)
    assert in_child(close)
    assert len(list(plan)) == 299
    assert prisma.stats()["direct_reads"] == 0
    assert program.VARIABLE in os.environ


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_kind_are_in_the_session(
    prisma: prismaio.Prisma, files: list[Path], method: str
) -> None:
    client = prisma._connection.client()
    assert client is not None
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        jobs = [(prisma, files[at:200:2], client.session) for at in range(2)]
        said = pool.starmap(pid_and_whether_all_came, jobs)
    assert said == [(client.engine_pid, True)] * 2


def test_it_pickles_to_less_than_4_kb(prisma: prismaio.Prisma) -> None:
    assert len(pickle.dumps(prisma)) < 4096
    prisma.close()
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(prisma)


def test_what_was_pickled_without_an_engine_reads_directly(files: list[Path]) -> None:
    with prismaio.connect(disable=True) as prisma:
        again = pickle.loads(pickle.dumps(prisma))
    assert bytes(again.read(files[5])) == files[5].read_bytes()
    assert again.stats()["engine_pid"] == 0


@pytest.mark.filterwarnings("error")
def test_what_was_pickled_outlives_its_engine(files: list[Path], eventually: Eventually) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        pickled = pickle.dumps(prisma)
        ended = prisma.stats()["engine_pid"]
    eventually(lambda: not is_alive(ended), "the end of the engine")
    with pickle.loads(pickled) as again:
        assert read_all(again, files)
        assert again.stats()["buffer_bytes"] == 16 << 20


def test_an_executed_child_joins_the_engine_of_its_program(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    said = subprocess.check_output([sys.executable, "-c", EXECUTED, str(files[7])], timeout=30)
    assert json.loads(said) == [prisma.stats()["engine_pid"], True]


def test_a_child_of_a_program_that_has_ended_starts_an_engine(files: list[Path]) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        environment = dict(os.environ)
        pid = prisma.stats()["engine_pid"]
    assert program.VARIABLE in environment
    assert program.VARIABLE not in os.environ
    command = [sys.executable, "-W", "error", "-c", EXECUTED, str(files[7])]
    joined, same = json.loads(subprocess.check_output(command, timeout=30, env=environment))
    assert same
    assert joined not in (0, pid)


def test_a_program_in_a_job_keeps_the_jobs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    one, two = program.Presence(), program.Presence()
    assert os.environ[program.VARIABLE] == "slurm:7"
    one.end()
    one.end()
    assert program.VARIABLE in os.environ
    del two
    assert program.VARIABLE not in os.environ


def test_what_sees_other_files_does_not_join(
    prisma: prismaio.Prisma, monkeypatch: pytest.MonkeyPatch
) -> None:
    pickled = pickle.dumps(prisma)
    monkeypatch.setattr("prismaio.launch.files_seen", lambda: "a container's")
    with pickle.loads(pickled) as elsewhere:
        assert elsewhere.stats()["engine_pid"] not in (0, prisma.stats()["engine_pid"])
