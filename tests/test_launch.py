"""Who starts an engine, who joins it, and that it takes nothing of its starter along."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Eventually
from prismaio import _core, launch, program, spawn
from prismaio.errors import PrismaError, SettingError
from prismaio.launch import attach, find_or_start, job_address, reap
from prismaio.settings import Settings, resolve

JOB_VARIABLES = (
    program.VARIABLE,
    "TORCHELASTIC_RUN_ID",
    "SLURM_JOB_ID",
    "MASTER_ADDR",
    "MASTER_PORT",
)
NOBODY = 65534
# Joins its job's engine, says which, and stays until its standard input ends.
MEMBER = """
import json, sys
from prismaio import _core, launch
from prismaio.settings import resolve
print("ready", flush=True)
sys.stdin.readline()
client, found = launch.attach(resolve(memory="4MiB"), _core.Client)
print(json.dumps([client.counters()["engine_pid"], found.started]), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def settings() -> Settings:
    return resolve(memory="4MiB", depth=2)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes this process one of a job of its own; returns the address of that job's engine."""
    for name in JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", os.urandom(8).hex())
    address = job_address(os.environ)
    assert address is not None
    return address


@pytest.fixture
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def engine_pid(settings: Settings, _no_job: None) -> Iterator[int]:
    """A running engine."""
    client, _ = attach(settings, _core.Client)
    yield pid_of(client)
    del client


def pid_of(client: _core.Client) -> int:
    return client.counters()["engine_pid"]


def status_of(pid: int) -> dict[str, str]:
    """What the kernel says of a process; nothing once it is gone for good."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_gone(pid: int) -> bool:
    return not status_of(pid)


def script(folder: Path, body: str) -> str:
    path = folder / "engine.py"
    path.write_text(body)
    return str(path)


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ | environment,
    )


def names_in(process: int) -> list[str]:
    return [str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir()]


# Starting


@pytest.mark.usefixtures("_no_job")
def test_without_a_job_each_program_has_an_engine_of_its_own(settings: Settings) -> None:
    first, second = (attach(settings, _core.Client) for _ in range(2))
    assert first[1].started
    assert second[1].started
    assert pid_of(first[0]) != pid_of(second[0])


def test_the_engine_works_in_the_root_in_a_session_of_its_own(engine_pid: int) -> None:
    assert Path(f"/proc/{engine_pid}/cwd").readlink() == Path("/")
    assert os.getsid(engine_pid) != os.getsid(0)
    assert status_of(engine_pid)["Name"] == "prismaio-engine"
    assert status_of(engine_pid)["Umask"] == "0077"


def test_the_engine_is_nobodys_child_and_leaves_no_zombie(
    engine_pid: int, eventually: Eventually
) -> None:
    assert int(status_of(engine_pid)["PPid"]) != os.getpid()
    os.kill(engine_pid, signal.SIGKILL)
    eventually(lambda: is_gone(engine_pid), "the end of the engine")
    assert [pid for pid in children() if status_of(pid).get("State", "").startswith("Z")] == []


def children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in listed.split()]


@pytest.mark.usefixtures("_no_job")
def test_the_engine_inherits_no_descriptor_but_its_socket(
    settings: Settings, tmp_path: Path
) -> None:
    with (tmp_path / "inheritable").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        inlet, outlet = os.pipe()
        os.set_inheritable(outlet, True)
        client, _ = attach(settings, _core.Client)
        held = names_in(pid_of(client))
    ours = {file.name, *(f"pipe:[{os.fstat(end).st_ino}]" for end in (inlet, outlet))}
    assert held.count(os.devnull) == 3
    assert ours & set(held) == set()
    os.close(inlet)
    os.close(outlet)


def test_a_pipe_ends_with_its_program_though_the_engine_lives_on(
    job: str, settings: Settings
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MEMBER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        program.stdin.write(b"\n")
        program.stdin.flush()
        pid, _ = json.loads(program.stdout.readline())
        client, found = attach(settings, _core.Client)
        assert (found.address, pid_of(client)) == (job, pid)
        program.stdin.close()
        assert program.stdout.read() == b""  # waits for ever if the engine holds the pipe
    assert not is_gone(pid)


def test_signals_meant_for_the_training_do_not_end_the_engine(engine_pid: int) -> None:
    ignored = int(status_of(engine_pid)["SigIgn"], 16)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
        assert ignored & 1 << (number - 1)


@pytest.mark.usefixtures("_no_job")
def test_an_engine_can_be_terminated_whatever_its_program_does_with_signals(
    settings: Settings, eventually: Eventually
) -> None:
    handler = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        client, _ = attach(settings, _core.Client)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, handler)
    pid = pid_of(client)
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: is_gone(pid), "the end of the engine")


@pytest.mark.usefixtures("_no_job")
def test_the_engine_runs_none_of_the_users_modules(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    for name in ("sitecustomize", "usercustomize", "signal", "contextlib"):
        (tmp_path / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    attach(settings, _core.Client)
    assert not ran.exists()


@pytest.mark.usefixtures("_no_job")
def test_the_engine_keeps_the_environment(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setenv("PRISMAIO_BENCH_RUN", "this one")
    client, _ = attach(settings, _core.Client)
    environment = Path(f"/proc/{pid_of(client)}/environ").read_bytes().split(b"\0")
    assert b"PRISMAIO_BENCH_RUN=this one" in environment


def test_a_program_that_starts_an_engine_and_ends_warns_of_nothing() -> None:
    done = run(
        "from prismaio import _core, launch\n"
        "from prismaio.settings import resolve\n"
        "client, found = launch.attach(resolve(memory='4MiB'), _core.Client)\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("_no_job")
def test_a_split_installation_is_found_whole(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    """An editable install has Python files in one folder and the native module in another."""
    sources = tmp_path / "prismaio"
    sources.mkdir()
    (sources / "__init__.py").write_text("raise ImportError('the face is for training')\n")
    engine = sources / "_engine.py"
    engine.write_text(Path(spawn.ENGINE_SCRIPT).read_text())
    monkeypatch.setattr(spawn, "__file__", str(sources / "spawn.py"))
    client, _ = attach(settings, _core.Client, script=str(engine))
    command = Path(f"/proc/{pid_of(client)}/cmdline").read_text()
    assert str(sources) in command
    assert str(Path(_core.__file__).parent) in command


# Joining


def test_eight_processes_of_a_job_that_start_at_once_share_one_engine(job: str) -> None:
    members = [
        subprocess.Popen(
            [sys.executable, "-c", MEMBER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PRISMAIO_LOOKAHEAD": "64"},
        )
        for _ in range(8)
    ]
    try:
        assert all(member.stdout and member.stdout.readline() == b"ready\n" for member in members)
        for member in members:
            assert member.stdin is not None
            member.stdin.write(b"\n")
            member.stdin.flush()
        said = [json.loads(member.stdout.readline()) for member in members if member.stdout]
    finally:
        for member in members:
            member.communicate(timeout=30)
    assert len({pid for pid, _ in said}) == 1
    assert [started for _, started in said].count(True) == 1
    assert all(member.returncode == 0 for member in members)


def test_an_engine_that_was_killed_is_followed_by_another(
    job: str, settings: Settings, eventually: Eventually
) -> None:
    client, first = attach(settings, _core.Client)
    killed = pid_of(client)
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: is_gone(killed), "the end of the engine")
    client, second = attach(settings, _core.Client)
    assert (first.started, second.started) == (True, True)
    assert first.address == second.address == job
    assert pid_of(client) != killed


def test_an_engine_that_is_just_ending_is_not_joined(job: str, settings: Settings) -> None:
    ending = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ending.bind("\0" + job)
    ending.listen()

    def connect_late(address: str) -> _core.Client:
        if ending.fileno() >= 0:
            ending.close()
            raise ConnectionResetError(errno.ECONNRESET, "the engine went away")
        return _core.Client(address)

    _, found = attach(settings, connect_late)
    assert found == (job, True)


def test_an_engine_whose_program_is_killed_before_it_joins_ends_too(
    job: str, eventually: Eventually
) -> None:
    text = (
        "import signal\n"
        "from prismaio.launch import attach\n"
        "from prismaio.settings import resolve\n"
        "attach(resolve(memory='4MiB'), lambda _: (print('started', flush=True), signal.pause()))\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"started\n"
        assert f"@{job}\n" in Path("/proc/net/unix").read_text()
        program.kill()
    listed = Path("/proc/net/unix")
    eventually(lambda: f"@{job}\n" not in listed.read_text(), "the engine's end", timeout_s=3)


def test_engines_that_all_end_while_they_are_joined_are_an_error(
    job: str, settings: Settings
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as taken:
        taken.bind("\0" + job)  # and never listens
        with pytest.raises(PrismaError, match=re.escape(job)):
            attach(settings, _core.Client)


def test_another_users_engine_is_refused_for_one_of_our_own(job: str, settings: Settings) -> None:
    with squatter(job) as is_foreign:

        def connect_warily(address: str) -> _core.Client:
            if is_foreign(address):  # where there is no other user to be had
                raise PermissionError(errno.EACCES, "the engine belongs to another user")
            return _core.Client(address)

        assert not find_or_start(settings).started
        client, found = attach(settings, connect_warily)
    assert found.started
    assert found.address != job
    assert not is_gone(pid_of(client))


class squatter:  # noqa: N801 - reads as what it is: with squatter(address)
    """Another user that listens at an address; without root, this user, and a check that says so.

    Entering gives the check: whether the address is one that must be taken as foreign.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> Callable[[str], bool]:
        is_root = os.geteuid() == 0
        ready, tell = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            if is_root:
                os.setuid(NOBODY)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind("\0" + self._address)
            listener.listen()
            os.write(tell, b"!")
            signal.pause()
        assert os.read(ready, 1) == b"!"
        os.close(ready)
        os.close(tell)
        return lambda address: not is_root and address == self._address

    def __exit__(self, *_: object) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)


def test_an_address_that_settings_name_is_joined_and_nothing_is_started(job: str) -> None:
    client, found = attach(resolve(memory="4MiB"), _core.Client)
    named = resolve(engine=found.address, memory="4MiB")
    again, joined = attach(named, _core.Client)
    assert joined == (job, False)
    assert pid_of(client) == pid_of(again)


def test_an_address_that_nobody_listens_at_is_an_error_that_names_it() -> None:
    with pytest.raises(PrismaError, match="nobody-is-here"):
        attach(resolve(engine="nobody-is-here"), _core.Client)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"TORCHELASTIC_RUN_ID": "7"}, {"TORCHELASTIC_RUN_ID": "8"}),
        ({"TORCHELASTIC_RUN_ID": "7"}, {"SLURM_JOB_ID": "7"}),
        ({"MASTER_ADDR": "a", "MASTER_PORT": "1"}, {"MASTER_ADDR": "a", "MASTER_PORT": "2"}),
    ],
)
def test_different_jobs_meet_at_different_addresses(
    one: dict[str, str], other: dict[str, str]
) -> None:
    assert job_address(one) == job_address(dict(one))
    assert job_address(one) != job_address(other)
    assert None not in (job_address(one), job_address(other))


@pytest.mark.parametrize(
    "environment",
    [{}, {"TORCHELASTIC_RUN_ID": "none"}, {"SLURM_JOB_ID": ""}, {"MASTER_ADDR": "alone"}],
)
def test_without_a_job_there_is_no_common_address(environment: dict[str, str]) -> None:
    assert job_address(environment) is None


def test_a_run_without_an_id_is_known_by_its_master() -> None:
    master = {"MASTER_ADDR": "a", "MASTER_PORT": "1"}
    assert job_address({"TORCHELASTIC_RUN_ID": "none", **master}) == job_address(master)


def test_processes_that_see_other_files_do_not_share_an_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {"SLURM_JOB_ID": "7"}
    here = job_address(environment)
    monkeypatch.setattr(launch, "_link", lambda path: f"another {path}")
    assert job_address(environment) != here


# Failing


@pytest.mark.usefixtures("_no_job")
def test_an_engine_that_breaks_after_detaching_is_an_error_and_no_hang(
    settings: Settings, tmp_path: Path
) -> None:
    broken = script(tmp_path, "import os\nif os.fork(): os._exit(0)\nimport no_such_module\n")
    with pytest.raises(PrismaError, match=r"did not come up.*PRISMAIO_LOG"):
        attach(settings, _core.Client, script=broken)


@pytest.mark.usefixtures("_no_job")
def test_an_engine_that_breaks_at_once_is_an_error_with_its_status(
    settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(PrismaError, match="status 7"):
        attach(settings, _core.Client, script=script(tmp_path, "raise SystemExit(7)"))


@pytest.mark.usefixtures("_no_job")
def test_a_log_holds_what_the_engine_says_and_only_its_user_reads_it(
    tmp_path: Path, eventually: Eventually
) -> None:
    log = tmp_path / "engine.log"
    broken = script(tmp_path, "import os\nif os.fork(): os._exit(0)\nimport no_such_module\n")
    with pytest.raises(PrismaError):
        attach(resolve(memory="4MiB", log=log), _core.Client, script=broken)
    eventually(lambda: "no_such_module" in log.read_text(), "the engine's last words")
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("_no_job")
def test_a_log_that_cannot_be_written_is_named(settings: Settings) -> None:
    unwritable = "/proc/self/no-log-here"
    with pytest.raises(SettingError, match=unwritable):
        find_or_start(settings._replace(log=unwritable))


@pytest.mark.usefixtures("_no_job")
@pytest.mark.parametrize("executable", ["", "/usr/bin/blender"])
def test_a_program_without_an_interpreter_is_told_so(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, executable: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(PrismaError, match=r"no Python\s+interpreter"):
        find_or_start(settings)


@pytest.mark.usefixtures("_no_job")
def test_a_frozen_program_does_not_start_itself_as_an_engine(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(PrismaError, match="frozen"):
        find_or_start(settings)


@pytest.mark.usefixtures("_no_job")
def test_an_interpreter_that_is_gone_is_an_error(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python3")
    with pytest.raises(PrismaError, match="cannot start an engine"):
        find_or_start(settings)


@pytest.mark.usefixtures("_no_job")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, TimeoutError])
def test_a_start_that_a_signals_handler_ends_leaves_no_child(
    settings: Settings, tmp_path: Path, kind: type[BaseException]
) -> None:
    def give_up(*_: object) -> None:
        raise kind

    before = children()
    handler = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises((kind, PrismaError)):
            find_or_start(settings, script=script(tmp_path, "import time\ntime.sleep(300)"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert children() == before


def test_an_address_is_free_again_after_a_start_that_failed(
    job: str, settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(PrismaError):
        find_or_start(settings, script=script(tmp_path, "raise SystemExit(7)"))
    _, found = attach(settings, _core.Client)
    assert found == (job, True)


def test_a_child_forked_during_the_start_holds_no_listening_socket(job: str) -> None:
    with launch._socket(_core.listen_at, job) as listener:
        child = os.fork()
        if child == 0:
            os._exit(1 if Path(f"/proc/self/fd/{listener}").exists() else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_program_that_is_its_containers_init_can_take_the_status() -> None:
    done = run(
        "import ctypes, os, signal, time\n"
        "from pathlib import Path\n"
        "ctypes.CDLL(None).prctl(36, 1)  # orphans become children of this process\n"
        "from prismaio import _core, launch\n"
        "from prismaio.settings import resolve\n"
        "client, _ = launch.attach(resolve(memory='4MiB'), _core.Client)\n"
        "pid = client.counters()['engine_pid']\n"
        "assert not launch.reap(pid)\n"
        "os.kill(pid, signal.SIGKILL)\n"
        "deadline = time.monotonic() + 10\n"
        "while not launch.reap(pid): assert time.monotonic() < deadline\n"
        "assert not Path(f'/proc/{pid}').exists()\n"
        "assert launch.reap(pid)\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_there_is_nothing_to_reap_of_an_engine_that_init_looks_after(engine_pid: int) -> None:
    assert reap(engine_pid)
