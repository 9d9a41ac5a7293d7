"""Planned files come from PRISMA through `open`, and everything else is the real `open`."""

from __future__ import annotations

import builtins
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import prismaio
import pytest
from PIL import Image
from prismaio import Prisma, hooks
from prismaio.files import SampleFile

REAL: Any = io.open


def opened(*args: Any, **options: Any) -> Any:
    """What `open` is now."""
    return open(*args, **options)  # noqa: PTH123


@pytest.fixture(scope="module")
def prisma() -> Iterator[Prisma]:
    with prismaio.connect(memory="16MiB") as prisma:
        yield prisma


@pytest.fixture
def planned(prisma: Prisma, tmp_path: Path) -> Iterator[Path]:
    """A text file that a plan holds, ten times over."""
    path = tmp_path / "planned.txt"
    path.write_bytes("grün\r\nblau\n".encode())
    with prisma.plan() as plan:
        plan.announce([path] * 10)
        plan.settle()
        yield path


def plan_and_settle(prisma: Prisma, path: Path) -> Any:
    plan = prisma.plan()
    plan.announce([path])
    plan.settle()
    return plan


def test_open_is_replaced_only_while_somebody_wants_it(prisma: Prisma, planned: Path) -> None:
    with hooks.serving(prisma):
        with hooks.serving(prisma):
            assert builtins.open is not REAL
        assert io.open is builtins.open is not REAL
    assert io.open is builtins.open is REAL


def test_a_planned_file_is_served_by_any_name_that_leads_to_it(
    prisma: Prisma, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(planned.parent)
    names = [planned, str(planned), os.fsencode(planned), planned.name]
    with hooks.serving(prisma):
        for name in names:
            with opened(name, "rb") as file:
                assert isinstance(file, SampleFile)
                assert file.read() == "grün\r\nblau\n".encode()
                assert file.name == (str(name) if isinstance(name, Path) else name)
        assert planned.read_bytes() == "grün\r\nblau\n".encode()


def test_text_is_read_as_open_reads_it(prisma: Prisma, planned: Path) -> None:
    for options in ({}, {"newline": ""}, {"encoding": "latin-1"}, {"errors": "replace"}):
        with REAL(planned, **options) as file:
            plain = (file.read(), file.mode, file.encoding, file.errors, file.name)
        with hooks.serving(prisma), opened(planned, **options) as file:
            assert isinstance(file.buffer, SampleFile)
            assert (file.read(), file.mode, file.encoding, file.errors, file.name) == plain


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "r+b"},
        {"mode": "ab"},
        {"mode": "rb", "buffering": 0},
        {"mode": "rb", "opener": os.open},
    ],
    ids=str,
)
def test_anything_else_is_the_real_open(
    prisma: Prisma, planned: Path, options: dict[str, Any]
) -> None:
    with hooks.serving(prisma), open(planned, **options) as file:  # noqa: PTH123
        assert not isinstance(file, SampleFile)
        assert os.fstat(file.fileno()).st_ino == planned.stat().st_ino


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mode": "rw"}, ValueError),
        ({"mode": "rb", "encoding": "utf-8"}, ValueError),
        ({"mode": "rb", "newline": ""}, ValueError),
        ({"mode": "r", "encoding": "no such"}, LookupError),
        ({"mode": 3}, TypeError),
    ],
    ids=str,
)
def test_mistakes_are_told_as_open_tells_them(
    prisma: Prisma, planned: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as plain:
        REAL(planned, **options)
    with hooks.serving(prisma), pytest.raises(error) as hooked:
        open(planned, **options)  # noqa: PTH123, SIM115
    assert str(hooked.value) == str(plain.value)


def test_a_planned_file_that_is_missing_raises_what_open_raises(
    prisma: Prisma, tmp_path: Path
) -> None:
    absent = tmp_path / "absent"
    with plan_and_settle(prisma, absent), hooks.serving(prisma):
        with pytest.raises(FileNotFoundError) as failure:
            open(absent)  # noqa: PTH123, SIM115
        assert failure.value.filename == str(absent)


def test_libraries_read_planned_files_unchanged(prisma: Prisma, tmp_path: Path) -> None:
    array = np.arange(1000)
    np.save(tmp_path / "array.npy", array)
    Image.new("RGB", (30, 20), (1, 2, 3)).save(tmp_path / "picture.png")
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("inside", "text")
    before = prisma.stats()["misses"] + prisma.stats()["hits"] + prisma.stats()["lates"]
    with prisma.plan() as plan, hooks.serving(prisma):
        plan.announce(tmp_path / name for name in ("array.npy", "picture.png", "some.zip"))
        plan.settle()
        assert (np.load(tmp_path / "array.npy") == array).all()
        with Image.open(tmp_path / "picture.png") as picture:
            assert picture.convert("RGB").getpixel((5, 5)) == (1, 2, 3)
        with zipfile.ZipFile(tmp_path / "some.zip") as archive:
            assert archive.read("inside") == b"text"
    assert prisma.stats()["misses"] + prisma.stats()["hits"] + prisma.stats()["lates"] == before + 3


def test_an_open_of_somebody_elses_stays(
    prisma: Prisma, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "open", lambda *_: "theirs")
    with hooks.serving(prisma):
        assert opened(planned) == "theirs"
        assert planned.read_bytes()
    assert opened(planned) == "theirs"


def test_what_is_put_over_the_hook_stays(
    prisma: Prisma, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hooks.serving(prisma):
        hook = builtins.open

        def over(*args: Any, **options: Any) -> Any:
            return hook(*args, **options)

        monkeypatch.setattr(builtins, "open", over)
    assert builtins.open is over
    with open(planned, "rb") as file:  # noqa: PTH123
        assert not isinstance(file, SampleFile)
