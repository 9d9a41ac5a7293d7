"""Argument over environment over default, and what is refused."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prismaio import container
from prismaio.container import MemoryLimit
from prismaio.errors import PrismaError, SettingError
from prismaio.settings import INTERNAL_VARIABLES, SETTINGS, resolve
from prismaio.sizes import GIB, MIB


@pytest.fixture
def _open_files_limit() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def give_memory(monkeypatch: pytest.MonkeyPatch, limit_bytes: int) -> None:
    limit = MemoryLimit(limit_bytes, "this container")
    monkeypatch.setattr(container, "memory_limit", lambda: limit)


def test_an_argument_beats_the_environment_which_beats_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRISMAIO_DEPTH", "7")
    monkeypatch.setenv("PRISMAIO_MEMORY", "3MiB")
    settings = resolve(memory="5MiB")
    assert (settings.memory_bytes, settings.depth, settings.lookahead) == (5 * MIB, 7, 2048)
    assert settings.origins["memory"] == "argument"
    assert settings.origins["depth"] == "environment (PRISMAIO_DEPTH)"
    assert settings.origins["lookahead"] == "default"


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve().depth == 16
    monkeypatch.setenv("PRISMAIO_DEPTH", "5")
    assert resolve().depth == 5
    monkeypatch.setenv("PRISMAIO_DEPTH", "")
    assert resolve().origins["depth"] == "default"


def test_every_setting_can_come_from_both_sides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    values = {
        "memory": 4 * MIB,
        "depth": 3,
        "lookahead": 9,
        "engine": "some-name",
        "disable": True,
        "source": "io_uring",
        "log": log,
    }
    assert set(values) == {setting.name for setting in SETTINGS}
    by_argument = resolve(**values)
    for setting in SETTINGS:
        monkeypatch.setenv(setting.variable, str(values[setting.name]))
    by_environment = resolve()
    expected = (4 * MIB, 3, 9, "some-name", True, "io_uring", str(log))
    assert by_argument[:-1] == by_environment[:-1] == expected


@pytest.mark.parametrize(
    ("limit_bytes", "expected"), [(64 * GIB, 2 * GIB), (4 * GIB, GIB), (2 * MIB, MIB)]
)
def test_memory_is_a_quarter_of_the_container_and_at_most_2_gib(
    monkeypatch: pytest.MonkeyPatch, limit_bytes: int, expected: int
) -> None:
    give_memory(monkeypatch, limit_bytes)
    assert resolve().memory_bytes == expected


def test_more_memory_than_the_container_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    give_memory(monkeypatch, 4 * GIB)
    assert resolve(memory="4GiB").memory_bytes == 4 * GIB
    with pytest.raises(SettingError, match=r"memory='5GiB' .*argument.* 4 GiB that this container"):
        resolve(memory="5GiB")


@pytest.mark.usefixtures("_open_files_limit")
def test_depth_leaves_descriptors_for_the_rest() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    assert resolve().depth == 16
    assert resolve(depth=32).depth == 32
    with pytest.raises(SettingError, match=r"depth=33 .* at most 32.*ulimit -n"):
        resolve(depth=33)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
    assert resolve().depth == 8
    assert "40 open files" in resolve().origins["depth"]


def test_the_off_switch_works_where_the_rest_would_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_memory(monkeypatch, 16 * MIB)
    monkeypatch.setenv("PRISMAIO_DISABLE", "1")
    assert resolve(memory="1GiB", depth=1024).disable


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("memroy", "memory"),
        ("memory_bytes", "memory"),
        ("Depth", "depth"),
        ("look_ahead", "lookahead"),
    ],
)
def test_a_mistyped_argument_is_refused_with_the_nearest_name(name: str, nearest: str) -> None:
    with pytest.raises(SettingError, match=f"'{name}'.*did you mean {nearest}"):
        resolve(**{name: 1})


def test_a_mistyped_variable_is_refused_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRISMAIO_DETPH", "3")
    with pytest.raises(SettingError, match=r"PRISMAIO_DETPH.*did you mean PRISMAIO_DEPTH"):
        resolve(depth=4)


def test_a_name_like_no_other_is_refused_with_all_there_are() -> None:
    with pytest.raises(SettingError, match="there are memory, depth, lookahead"):
        resolve(zzz=1)


def test_variables_that_prisma_sets_itself_are_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in INTERNAL_VARIABLES:
        monkeypatch.setenv(name, "anything")
    resolve()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("memory", "2G", "2GiB or 2GB"),
        ("memory", "much", "is not a size"),
        ("memory", MIB - 1, "at least"),
        ("memory", -5, "at least"),
        ("memory", 2e9, "not float"),
        ("memory", True, "not bool"),
        ("memory", "", "is not a size"),
        ("depth", 0, "from 1 to 1024"),
        ("depth", 1025, "from 1 to 1024"),
        ("depth", "4", "not str"),
        ("depth", 4.0, "not float"),
        ("lookahead", 0, "from 1 to"),
        ("lookahead", True, "not bool"),
        ("disable", 1, "True or False"),
        ("disable", "yes", "True or False"),
        ("engine", "", "1 to 107 bytes"),
        ("engine", "x" * 108, "1 to 107 bytes"),
        ("engine", 7, "not int"),
        ("source", "iouring", r"did you mean io_uring\?"),
        ("source", "disk", "there are threads, io_uring"),
        ("source", 1, "one of threads, io_uring, not int"),
        ("log", "/no/such/folder/log", "directory that exists"),
        ("log", "/", "directory that exists"),
        ("log", "", "path of a file"),
        ("log", 3, "not int"),
    ],
)
def test_an_argument_that_cannot_work_is_named_with_the_way_out(
    name: str, value: object, why: str
) -> None:
    with pytest.raises(SettingError, match=rf"^{name}=.*argument.*{why}"):
        resolve(**{name: value})


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("memory", "1KiB", "at least"),
        ("depth", "0", "from 1 to"),
        ("depth", "many", "a whole number"),
        ("lookahead", "1.5", "a whole number"),
        ("disable", "maybe", "1 or 0"),
    ],
)
def test_a_variable_that_cannot_work_is_named_with_its_origin(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, why: str
) -> None:
    variable = f"PRISMAIO_{name.upper()}"
    monkeypatch.setenv(variable, text)
    with pytest.raises(SettingError, match=rf"^{name}='{text}'.*{variable}.*{why}"):
        resolve()


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("YES", True), ("off", False), ("0", False)]
)
def test_the_off_switch_reads_what_people_write(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: bool
) -> None:
    monkeypatch.setenv("PRISMAIO_DISABLE", text)
    assert resolve().disable is expected


def test_a_log_is_found_from_where_the_program_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve(log="engine.log").log == str(tmp_path / "engine.log")


def test_an_address_may_be_written_as_ss_shows_it() -> None:
    assert resolve(engine="@prismaio-1").engine == "prismaio-1"
    assert resolve(engine="/run/prisma/socket").engine == "/run/prisma/socket"


def test_a_setting_error_is_prismas_and_a_value_error() -> None:
    assert issubclass(SettingError, PrismaError)
    assert issubclass(SettingError, ValueError)


def test_importing_settings_asks_neither_environment_nor_container() -> None:
    program = "import prismaio.settings"
    environment = os.environ | {"PRISMAIO_NONSENSE": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=30)
