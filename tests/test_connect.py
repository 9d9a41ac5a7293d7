"""connect(): the bytes and the order of a plain loop, from an engine of its own."""

from __future__ import annotations

import dis
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType

import prismaio
import pytest
from conftest import Eventually, is_alive
from prismaio import _core


def test_samples_come_in_their_order_byte_for_byte(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    plan = files * 3
    read = [(sample.position, bytes(sample)) for sample in prisma.iterate(plan)]
    assert read == [(at, path.read_bytes()) for at, path in enumerate(plan)]
    assert prisma.stats()["reads"] > 0


def test_samples_are_read_only_views_of_the_shared_buffer(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    sample = next(iter(prisma.iterate(files[5:])))
    assert sample.is_shared
    assert sample.path == os.fsencode(files[5])
    with pytest.raises(TypeError):
        sample.view()[0] = 1


def test_views_outlive_the_iteration_and_the_connection(files: list[Path]) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        views = [sample.view() for sample in itertools.islice(prisma.iterate(files), 50)]
    assert [bytes(view) for view in views] == [path.read_bytes() for path in files[:50]]


def plainly(path: Path) -> bytes:
    with open(str(path), "rb") as file:  # noqa: PTH123 - its errors name the file as text
        return file.read()


def outcome(read: Callable[[], bytes]) -> bytes | tuple[type[OSError], int | None, object]:
    try:
        return read()
    except OSError as error:
        return type(error), error.errno, error.filename


def test_each_sample_is_what_open_would_give_or_raise_at_its_place(
    prisma: prismaio.Prisma, files: list[Path], tmp_path: Path
) -> None:
    folder, loop, locked = tmp_path / "folder", tmp_path / "loop", tmp_path / "locked"
    folder.mkdir()
    loop.symlink_to(loop)
    locked.write_bytes(b"for root only")
    locked.chmod(0)
    odd = [tmp_path / "absent", folder, loop, locked, files[3] / "below", tmp_path / ("n" * 256)]
    plan = [one for path in odd for one in (files[0], path, files[2])]
    read = prisma.iterate(plan)
    got = [outcome(lambda: bytes(next(read))) for _ in plan]
    assert got == [outcome(partial(plainly, path)) for path in plan]
    with pytest.raises(StopIteration):
        next(read)


def test_what_cannot_be_read_is_left_out_if_asked_for(
    prisma: prismaio.Prisma, files: list[Path], tmp_path: Path
) -> None:
    absent = tmp_path / "absent"
    read = prisma.iterate([absent, files[1], absent, tmp_path, files[2]], on_error="skip")
    assert [(sample.position, len(sample)) for sample in read] == [(1, 100), (4, 200)]
    assert [(skip.position, skip.path) for skip in read.skipped] == [
        (0, str(absent)),
        (2, str(absent)),
        (3, str(tmp_path)),
    ]
    assert [type(skip.error) for skip in read.skipped] == [
        FileNotFoundError,
        FileNotFoundError,
        IsADirectoryError,
    ]
    assert prisma.stats()["skipped"] == 3


def test_what_cannot_be_read_is_replaced_if_asked_for(
    prisma: prismaio.Prisma, files: list[Path], tmp_path: Path
) -> None:
    absent = tmp_path / "absent"
    read = prisma.iterate(
        [files[1], absent, files[2]], on_error=lambda path, error: f"{path}: {error.errno}".encode()
    )
    assert [bytes(sample) for sample in read] == [
        files[1].read_bytes(),
        f"{absent}: 2".encode(),
        files[2].read_bytes(),
    ]


def test_another_way_with_errors_is_named(prisma: prismaio.Prisma) -> None:
    with pytest.raises(ValueError, match=r"on_error='ignore'.*skip"):
        prisma.iterate([], on_error="ignore")  # type: ignore[arg-type]


def test_names_of_any_bytes_are_read(prisma: prismaio.Prisma, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff \n\x01"
    with open(name, "wb") as file:  # noqa: PTH123 - pathlib knows no such names
        file.write(b"odd")
    assert bytes(next(prisma.iterate([name]))) == b"odd"


def test_an_endless_plan_can_be_left(
    prisma: prismaio.Prisma, files: list[Path], eventually: Eventually
) -> None:
    for _ in range(20):
        read = itertools.islice(prisma.iterate(itertools.cycle(files)), 3)
        assert [bytes(sample) for sample in read] == [path.read_bytes() for path in files[:3]]
    eventually(lambda: prisma.stats()["used_bytes"] == 0, "the end of all room taken")


def test_what_a_plan_raises_comes_after_the_samples_before_it(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    def plan() -> Iterator[Path]:
        yield from files[:10]
        raise RuntimeError("no more")

    read = prisma.iterate(plan())
    for path in files[:10]:
        assert bytes(next(read)) == path.read_bytes()
    with pytest.raises(RuntimeError, match="no more"):
        next(read)


def test_a_range_of_an_unplanned_file_is_read(prisma: prismaio.Prisma, files: list[Path]) -> None:
    assert bytes(prisma.read(files[9], 10, 20)) == files[9].read_bytes()[10:30]


def test_ranges_are_read_as_such(prisma: prismaio.Prisma, files: list[Path]) -> None:
    plan: list[tuple[Path, int] | tuple[Path, int, int | None]]
    plan = [(files[9], 10, 20), (files[9], 890), (files[9], 890, 100), (files[9], 2000, None)]
    whole = files[9].read_bytes()
    read = [bytes(sample) for sample in prisma.iterate(plan)]
    assert read == [whole[10:30], whole[890:], whole[890:], b""]


@pytest.mark.parametrize(
    ("item", "kind", "why"),
    [
        (5, TypeError, r"plan position 2: 5 \(int\) is neither a path nor"),
        (None, TypeError, "plan position 2: None"),
        (("x", 1, 2, 3), TypeError, "plan position 2: .* is neither"),
        (("x", "1"), TypeError, "plan position 2: .* is neither"),
        (("x", -1), ValueError, "plan position 2: .*range"),
        ("a\0b", ValueError, "plan position 2: .*null byte"),
    ],
)
def test_what_is_no_path_is_named_with_its_position(
    prisma: prismaio.Prisma, files: list[Path], item: object, kind: type[Exception], why: str
) -> None:
    read = prisma.iterate([*files[:2], item])  # type: ignore[list-item]
    assert len(next(read)) == 0
    assert len(next(read)) == 100
    with pytest.raises(kind, match=why):
        next(read)


@pytest.mark.parametrize("paths", ["/one/path", b"/one", Path("/one"), 7])
def test_one_path_is_no_plan(prisma: prismaio.Prisma, paths: object) -> None:
    with pytest.raises(TypeError, match="iterable of paths"):
        prisma.iterate(paths)  # type: ignore[arg-type]


def test_a_relative_path_means_what_it_means_when_it_is_drawn(
    prisma: prismaio.Prisma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)

    def plan() -> Iterator[str]:
        for name in ("one", "two"):
            monkeypatch.chdir(tmp_path / name)
            yield "file"

    assert [bytes(sample) for sample in prisma.iterate(plan())] == [b"one", b"two"]


def test_a_plan_is_drawn_no_further_than_a_window_ahead(files: list[Path]) -> None:
    drawn = 0

    def plan() -> Iterator[Path]:
        nonlocal drawn
        for path in itertools.cycle(files):
            drawn += 1
            yield path

    with prismaio.connect(memory="16MiB", lookahead=100) as prisma:
        for used, _ in enumerate(itertools.islice(prisma.iterate(plan()), 500), 1):
            assert drawn <= used + 100


def test_an_interrupted_sample_is_not_lost(
    prisma: prismaio.Prisma, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = prisma.iterate(files[:3])

    class Interrupted(_core.Client):
        def take_at(self, *_: object) -> _core.Sample:
            raise KeyboardInterrupt

    next(read)
    client = prisma._connection.client()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(prisma._connection, "client", lambda: Interrupted.__new__(Interrupted))
        with pytest.raises(KeyboardInterrupt):
            next(read)
    assert prisma._connection.client() is client
    assert [sample.position for sample in read] == [1, 2]


@pytest.mark.parametrize("module", ["iteration", "connection"])
def test_an_interrupt_at_any_instruction_loses_no_sample_and_gives_none_twice(
    prisma: prismaio.Prisma, files: list[Path], module: str
) -> None:
    for instruction in range(1000):
        read = prisma.iterate(files[:4])
        positions = [next(read).position]
        interrupt = _InterruptAt(module, instruction)
        sys.settrace(interrupt)
        try:
            positions.append(next(read).position)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        positions.extend(sample.position for sample in read)
        assert positions == [0, 1, 2, 3], f"interrupted at instruction {instruction}"
        if not interrupt.came:
            break
    assert 5 < instruction < 999


class _InterruptAt:
    """A trace function: Ctrl-C before the instruction of that number in one of our modules."""

    def __init__(self, module: str, instruction: int) -> None:
        self._file = f"prismaio/{module}.py"
        self._left = instruction
        self.came = False

    def __call__(self, frame: FrameType, event: str, _: object) -> _InterruptAt | None:
        if not frame.f_code.co_filename.endswith(self._file) or frame.f_code.co_name == "__del__":
            return None
        frame.f_trace_opcodes = True
        instruction = frame.f_code.co_code[frame.f_lasti]
        # Between loading a value and returning it nobody looks for signals.
        if event == "opcode" and dis.opname[instruction] != "RETURN_VALUE":
            self._left -= 1
            if self._left < 0:
                self.came = True
                raise KeyboardInterrupt
        return self


def test_several_threads_share_an_iteration(prisma: prismaio.Prisma, files: list[Path]) -> None:
    read = prisma.iterate(files * 5)
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(lambda _: [(s.position, bytes(s)) for s in read], range(4))
        got = sorted(itertools.chain.from_iterable(parts))
    assert got == [(at, path.read_bytes()) for at, path in enumerate(files * 5)]


def test_a_file_larger_than_the_memory_goes_through_it(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(os.urandom(5 << 20))
    with prismaio.connect(memory="1MiB") as prisma:
        (sample,) = prisma.iterate([large])
        assert b"".join(sample.chunks()) == large.read_bytes()


def test_the_engine_ends_with_its_last_client(files: list[Path], eventually: Eventually) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        next(prisma.iterate(files))
        pid = prisma.stats()["engine_pid"]
        assert is_alive(pid)
    eventually(lambda: not is_alive(pid), "the end of the engine", 3)


def test_the_engine_ends_when_its_program_is_killed(
    files: list[Path], eventually: Eventually
) -> None:
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        prisma = prismaio.connect(memory="16MiB")
        next(prisma.iterate(files))
        os.write(outlet, str(prisma.stats()["engine_pid"]).encode())
        signal.pause()
    engine = int(os.read(inlet, 20))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    eventually(lambda: not is_alive(engine), "the end of the engine", 3)


@pytest.mark.parametrize(
    "setting",
    [
        {"memory": "4KiB"},
        {"memory": "much"},
        {"memory": "9000TiB"},
        {"depth": 0},
        {"depth": 10**9},
        {"lookahead": 0},
    ],
)
def test_an_impossible_setting_is_named(setting: dict[str, object]) -> None:
    with pytest.raises(prismaio.SettingError, match=next(iter(setting))):
        prismaio.connect(**setting)  # type: ignore[arg-type]


def test_knobs_are_set_while_running(prisma: prismaio.Prisma, eventually: Eventually) -> None:
    prisma.tune(depth=7, buffer_bytes="8MiB")
    eventually(lambda: (prisma.stats()["depth"], prisma.stats()["buffer_bytes"]) == (7, 8 << 20))
    for knobs in ({"depth": 0}, {"depth": -1}, {"buffer_bytes": 1}, {"buffer_bytes": "much"}):
        with pytest.raises(prismaio.SettingError, match=f"^{next(iter(knobs))}="):
            prisma.tune(**knobs)


def test_the_settings_in_force_can_be_read_with_their_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRISMAIO_LOOKAHEAD", "77")
    with prismaio.connect(memory="16MiB") as prisma:
        settings = prisma.settings
    assert (settings.memory_bytes, settings.lookahead) == (16 << 20, 77)
    assert settings.origins["memory"] == "argument"
    assert settings.origins["lookahead"] == "environment (PRISMAIO_LOOKAHEAD)"


def test_knobs_that_cannot_be_set_so_are_refused_by_name(prisma: prismaio.Prisma) -> None:
    with pytest.raises(prismaio.SettingError, match=r"'dpeth'.*did you mean depth"):
        prisma.tune(dpeth=1)  # type: ignore[arg-type]
    most = prisma.stats()["memory_bytes"]
    with pytest.raises(prismaio.SettingError, match=r"buffer_bytes=.*more than the 16 MiB"):
        prisma.tune(buffer_bytes=most + 1)
    prisma.tune(buffer_bytes=most)


def test_settings_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, files: list[Path]
) -> None:
    monkeypatch.setenv("PRISMAIO_MEMORY", "3MiB")
    monkeypatch.setenv("PRISMAIO_DEPTH", "5")
    with prismaio.connect(depth=6) as prisma:
        assert prisma.stats()["buffer_bytes"] == 3 << 20
        assert prisma.stats()["depth"] == 6
    monkeypatch.setenv("PRISMAIO_DETPH", "5")
    with pytest.raises(prismaio.SettingError, match="did you mean PRISMAIO_DEPTH"):
        prismaio.connect()


def test_two_connections_of_a_program_share_its_engine_and_later_ones_have_another() -> None:
    with prismaio.connect(memory="16MiB") as one, prismaio.connect(memory="4MiB") as two:
        assert one.stats()["engine_pid"] == two.stats()["engine_pid"]
        assert two.stats()["buffer_bytes"] == 16 << 20
    with prismaio.connect(memory="4MiB") as three:
        assert three.stats()["buffer_bytes"] == 4 << 20


def test_a_mistyped_argument_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(prismaio.SettingError, match=r"'memroy'.*did you mean memory"):
        prismaio.connect(memroy="1GiB")  # type: ignore[arg-type]


def test_a_closed_connection_says_so(files: list[Path]) -> None:
    prisma = prismaio.connect(memory="16MiB")
    prisma.close()
    with pytest.raises(ValueError, match="closed"):
        prisma.read(files[0])


def test_a_slow_plan_does_not_hold_up_its_first_sample(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    endless = itertools.count()
    next(prisma.iterate(files[at % len(files)] for at in endless))
    assert next(endless) <= 32


def test_an_interrupt_while_the_plan_is_drawn_loses_no_sample_in_silence(
    prisma: prismaio.Prisma, files: list[Path]
) -> None:
    def interrupted() -> Iterator[Path]:
        yield from files[:20]
        raise KeyboardInterrupt

    plan = prisma.iterate(interrupted())
    got: list[bytes] = []
    with pytest.raises(KeyboardInterrupt):
        got.extend(map(bytes, plan))
    with pytest.raises(RuntimeError, match="interrupted"):
        got.extend(map(bytes, plan))
    assert got == [path.read_bytes() for path in files[:20]]
