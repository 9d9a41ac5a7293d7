"""open(): a file object that whatever reads files can read, from the buffer."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import json
import os
import pickle
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import prismaio
import pytest
from conftest import Eventually
from prismaio.files import SampleFile, file_of
from prismaio.testing import SlowStorage

LINES = b"".join(b"%d %s\n" % (number, b"x" * (number % 97)) for number in range(2000)) + b"end"


class Opener:
    """Announces a file and opens it, insisting that it comes from the buffer."""

    def __init__(self, prisma: prismaio.Prisma, folder: Path) -> None:
        self._prisma = prisma
        self._plan = prisma.plan()
        self._folder = folder
        self._count = 0
        self.path = folder / "file 0"

    def __call__(self, content: bytes, mode: str = "rb", **text: str | None) -> Any:
        self._count += 1
        self.path = self._folder / f"file {self._count}"
        self.path.write_bytes(content)
        return self.again(mode, **text)

    def again(self, mode: str = "rb", **text: str | None) -> Any:
        self._plan.announce([self.path])
        self._plan.settle()
        file = self._prisma.open(self.path, mode, **text)
        assert isinstance(getattr(file, "buffer", file), SampleFile)
        return file


@pytest.fixture
def opened(prisma: prismaio.Prisma, tmp_path: Path) -> Opener:
    return Opener(prisma, tmp_path)


@pytest.fixture(params=["in one piece", "in chunks"])
def large_or_small(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[bytes], Any]]:
    """Opens a content as a small sample, and as one that is large for its buffer."""
    memory = "64MiB" if request.param == "in one piece" else "1MiB"
    with prismaio.connect(memory=memory, depth=2) as prisma:
        yield Opener(prisma, tmp_path)


STEPS: list[Callable[[Any, int], object]] = [
    lambda file, n: file.read(n),
    lambda file, n: file.read(n * 1000),
    lambda file, n: file.readline(),
    lambda file, n: file.readline(n),
    lambda file, n: (file.seek(n * 5000), file.tell()),
    lambda file, n: (file.seek(-n, os.SEEK_END), file.read(n // 2)),
    lambda file, n: (file.seek(n, os.SEEK_CUR), file.read(1)),
    lambda file, n: into(file, n * 3000),
    lambda file, n: list(itertools.islice(file, n)),
    lambda file, n: file.readlines(n),
    lambda file, n: file.tell(),
    lambda file, n: (file.peek(1)[:1], file.read(1)),
]


def into(file: Any, size: int) -> bytes:
    room = bytearray(size)
    return bytes(room[: file.readinto(room)])


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_calls_gives_what_a_real_file_gives(
    large_or_small: Callable[[bytes], Any], seed: int
) -> None:
    chance = random.Random(seed)
    content = LINES * chance.choice([1, 4, 20])
    file, real = large_or_small(content), io.BytesIO(content)
    for _ in range(60):
        step, n = chance.choice(STEPS), chance.randrange(200)
        if "peek" in step.__code__.co_names:  # which BytesIO has not
            assert file.peek(1)[:1] == real.getvalue()[real.tell() : real.tell() + 1]
            continue
        assert step(file, n) == step(real, n)
        assert file.tell() == real.tell()
    file.seek(0)
    assert file.read() == content


def test_it_knows_its_name_and_what_it_can(opened: Opener) -> None:
    with opened(b"content") as file:
        assert file.name == str(opened.path)
        assert file.mode == "rb"
        assert (file.readable(), file.seekable(), file.writable()) == (True, True, False)
        assert not file.isatty()
        assert isinstance(file, io.IOBase)
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"x")
        with pytest.raises(OSError, match="Invalid argument"):
            file.seek(-1)
        with pytest.raises(ValueError, match="whence"):
            file.seek(0, 7)
        assert file.seek(100) == 100
        assert file.read() == b""
    assert file.closed
    for use in (file.read, file.tell, file.readline, file.fileno, lambda: file.seek(0)):
        with pytest.raises(ValueError, match="closed"):
            use()
    file.close()


def test_the_descriptor_is_the_real_files_at_the_same_position(opened: Opener) -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names, not paths
    with opened(b"0123456789") as file:
        assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
        file.seek(4)
        assert os.read(file.fileno(), 3) == b"456"
        assert os.fstat(file.fileno()).st_size == 10
        assert file.read() == b"456789"
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_its_buffer_is_the_sample_in_place(opened: Opener) -> None:
    with opened(b"content") as file:
        view = file.getbuffer()
        assert bytes(view) == b"content"
        assert view.readonly
    assert bytes(view) == b"content"


def test_closing_gives_the_room_back(
    prisma: prismaio.Prisma, opened: Opener, eventually: Eventually
) -> None:
    file = opened(bytes(100_000))
    file.read(10)
    assert prisma.stats()["used_bytes"] > 0
    file.close()
    eventually(lambda: prisma.stats()["used_bytes"] == 0, "the room")


def test_text_is_decoded(opened: Opener) -> None:
    file = opened("eins\r\nzwölf\n".encode("latin-1"), "r", encoding="latin-1")
    assert list(file) == ["eins\n", "zwölf\n"]
    assert file.mode == "r"
    assert file.name == str(opened.path)
    with opened.again("r", encoding="latin-1", newline="") as raw:
        assert raw.read() == "eins\r\nzwölf\n"


@pytest.mark.parametrize("mode", ["w", "wb", "a", "x", "r+b", "rb+", "w+"])
def test_a_mode_that_writes_is_refused_by_name(
    prisma: prismaio.Prisma, files: list[Path], mode: str
) -> None:
    before = files[9].read_bytes()
    with pytest.raises(ValueError, match=f"mode '{mode}' would write".replace("+", r"\+")):
        prisma.open(files[9], mode)
    assert files[9].read_bytes() == before


def test_modes_and_words_that_open_would_not_take_are_refused(
    prisma: prismaio.Prisma, opened: Opener
) -> None:
    with pytest.raises(ValueError, match="mode 'q' is none"):
        prisma.open(opened.path, "q")
    with pytest.raises(ValueError, match="encoding"):
        opened(b"", encoding="utf-8")


def test_what_no_plan_holds_is_the_real_file(prisma: prismaio.Prisma, files: list[Path]) -> None:
    with prisma.open(files[9]) as file:
        assert isinstance(file, io.BufferedReader)
        assert file.read() == files[9].read_bytes()


def test_a_file_that_cannot_be_opened_raises_what_open_does(
    prisma: prismaio.Prisma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("absent", "."):
        for planned in (False, True):
            with prisma.plan() as plan:
                if planned:
                    plan.announce([name])
                    plan.settle()
                with pytest.raises(OSError) as expected:  # noqa: PT011 - which one is the point
                    open(name, "rb")  # noqa: PTH123, SIM115
                with pytest.raises(type(expected.value)) as failure:
                    prisma.open(name)
                assert failure.value.errno == expected.value.errno
                assert failure.value.filename == name


def test_a_relative_path_is_found_from_where_the_program_is(
    prisma: prismaio.Prisma, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.path.write_bytes(b"here")
    monkeypatch.chdir(opened.path.parent)
    with prisma.plan() as plan:
        plan.announce([opened.path])
        plan.settle()
        file = prisma.open(opened.path.name)
        assert isinstance(file, SampleFile)
        assert (file.name, file.read()) == (opened.path.name, b"here")


def test_a_large_file_that_shrinks_is_an_error_and_never_short(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(8 << 20))
    with prismaio.connect(memory="1MiB") as prisma, prisma.plan() as plan:
        plan.announce([path])
        plan.settle()
        file = prisma.open(path)
        file.read(100)
        os.truncate(path, 100_000)
        file.seek(-10, os.SEEK_END)
        with pytest.raises(OSError) as failure:  # noqa: PT011
            file.read()
        assert failure.value.errno == errno.ESTALE
        assert os.fsencode(failure.value.filename) == os.fsencode(path)


ODD_CALLS: list[Callable[[Any], object]] = [
    lambda file: file.seek(1.5),
    lambda file: file.seek("1"),
    lambda file: file.seek(True),
    lambda file: file.seek(None),
    lambda file: file.seek(0, 7),
    lambda file: file.seek(-1, os.SEEK_CUR),
    lambda file: file.seek(1 << 40),
    lambda file: (file.seek(1 << 40), file.read(1)),
    lambda file: (file.seek(10, os.SEEK_DATA), file.tell()),
    lambda file: (file.seek(10, os.SEEK_HOLE), file.read(1)),
    lambda file: file.read("1"),
    lambda file: file.read(1.5),
    lambda file: file.read(-7),
    lambda file: file.read(0),
    lambda file: file.read1(0),
    lambda file: file.readline(0),
    lambda file: file.readline(1.5),
    lambda file: file.readlines(10),
    lambda file: file.readinto(b"read-only"),
    lambda file: file.readinto("text"),
    lambda file: file.readinto(bytearray()),
    lambda file: file.truncate(),
    lambda file: file.truncate(3),
    lambda file: file.write(b"x"),
    lambda file: file.writelines([b"x"]),
    lambda file: file.flush(),
    lambda file: file.isatty(),
    lambda file: (file.mode, file.name, file.closed),
    lambda file: next(file),
    lambda file: (file.close(), file.close(), file.closed),
    lambda file: (file.close(), file.read()),
    lambda file: (file.close(), next(file)),
    lambda file: (file.close(), file.__enter__()),
    lambda file: (file.close(), file.readable()),
    lambda file: (file.close(), file.flush()),
]


@pytest.mark.parametrize("number", range(len(ODD_CALLS)))
def test_odd_calls_do_what_they_do_to_a_real_file(opened: Opener, number: int) -> None:
    def outcome(file: Any) -> object:
        with contextlib.closing(file):
            try:
                return ODD_CALLS[number](file)
            except Exception as error:
                return type(error), getattr(error, "errno", None)

    assert outcome(opened(LINES)) == outcome(open(opened.path, "rb"))  # noqa: PTH123, SIM115


@pytest.mark.skipif(SlowStorage.available() is not None, reason=str(SlowStorage.available()))
@pytest.mark.parametrize("disable", [False, True])
def test_a_file_that_ends_before_its_size_is_one_error_however_it_is_read(
    tmp_path: Path, disable: bool
) -> None:
    (tmp_path / "sample").write_bytes(bytes(10_000))
    with (
        SlowStorage(tmp_path) as slow,
        slow.fault("sample", at="read", end_at=5_000),
        prismaio.connect(memory="16MiB", disable=disable) as prisma,
    ):
        path = slow.path / "sample"
        for read in (lambda: next(prisma.iterate([path])), lambda: prisma.read(path)):
            with pytest.raises(OSError) as failure:  # noqa: PT011
                read()
            assert failure.value.errno == errno.ESTALE
            assert failure.value.filename == str(path)


# What reads files out there


def test_pillow_reads_pictures(opened: Opener) -> None:
    image = pytest.importorskip("PIL.Image")
    numpy = pytest.importorskip("numpy")
    pixels = numpy.random.default_rng(0).integers(0, 255, (64, 48, 3), dtype="u1")
    for kind in ("PNG", "JPEG", "TIFF"):
        made = io.BytesIO()
        image.fromarray(pixels).save(made, kind)
        expected = numpy.asarray(image.open(io.BytesIO(made.getvalue())))
        assert (numpy.asarray(image.open(opened(made.getvalue()))) == expected).all()


def test_numpy_loads_arrays(opened: Opener) -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(10_000).reshape(100, 100)
    one, several = io.BytesIO(), io.BytesIO()
    numpy.save(one, array)
    numpy.savez_compressed(several, a=array, b=array.T)
    descriptors = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    file = opened(one.getvalue())
    assert (numpy.load(file) == array).all()
    assert set(os.listdir("/proc/self/fd")) == descriptors, "read past the buffer"  # noqa: PTH208
    loaded = numpy.load(opened(several.getvalue()))
    assert (loaded["b"] == array.T).all()
    raw = opened(array.tobytes())
    assert (numpy.fromfile(raw, array.dtype, 10) == array.ravel()[:10]).all()
    assert raw.tell() == 10 * array.itemsize


def test_zip_archives_are_read(
    large_or_small: Callable[[bytes], Any],
) -> None:
    content = {str(number): os.urandom(200_000) for number in range(10)}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with zipfile.ZipFile(large_or_small(made.getvalue())) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == content


def test_pickles_and_json_are_loaded(opened: Opener) -> None:
    things = {"a": list(range(50_000)), "b": os.urandom(300_000), "c": "text"}
    file = opened(pickle.dumps(things) + pickle.dumps("another"))
    assert pickle.load(file) == things
    assert pickle.load(file) == "another"
    assert json.load(opened(json.dumps([1, 2]).encode())) == [1, 2]
    assert json.load(opened(json.dumps([1, 2]).encode(), "r")) == [1, 2]


@pytest.mark.parametrize("zipped", [True, False])
def test_torch_loads_tensors(opened: Opener, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    made = io.BytesIO()
    tensors = {"weights": torch.arange(10_000.0), "step": 7}
    torch.save(tensors, made, _use_new_zipfile_serialization=zipped)
    loaded = torch.load(opened(made.getvalue()), weights_only=True)
    assert (loaded["weights"] == tensors["weights"]).all()
    assert loaded["step"] == 7


def test_a_sample_becomes_a_file_by_hand(prisma: prismaio.Prisma, files: list[Path]) -> None:
    sample = next(prisma.iterate(files[9:]))
    with file_of(sample, b"any name") as file:
        assert file.name == b"any name"
        assert file.read() == files[9].read_bytes()
