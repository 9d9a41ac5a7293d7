"""Settings: argument over environment over default, each value with its origin.

They are checked once, when `resolve()` is called; importing this reads nothing.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from prismaio.errors import SettingError
from prismaio.sizes import GIB, MIB, format_size, parse_size

__all__ = ["INTERNAL_VARIABLES", "SETTINGS", "Setting", "Settings", "resolve", "resolve_knobs"]

LEAST_MEMORY_BYTES = MIB
DEFAULT_MEMORY_BYTES = 2 * GIB
DEFAULT_DEPTH = 16
MOST_DEPTH = 1024  # reads in flight; each one occupies a thread and a descriptor
DEFAULT_LOOKAHEAD = 2048
MOST_LOOKAHEAD = 1 << 20  # announced samples are kept in memory; past this they are no window
# What an engine opens beside the files it reads: its socket and arena, two for each client.
RESERVED_DESCRIPTORS = 32
SOURCES = ("threads", "io_uring")  # the first is the default
LONGEST_ABSTRACT_NAME = 107  # bytes, of the 108 of sun_path: the first one is zero

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_Value = TypeVar("_Value")


class Setting(NamedTuple):
    """One setting: how it is called and what it is for."""

    name: str  # as an argument
    variable: str  # in the environment
    field: str  # in `Settings`
    meaning: str


SETTINGS = (
    Setting("memory", "PRISMAIO_MEMORY", "memory_bytes", "memory that read-ahead may take"),
    Setting("depth", "PRISMAIO_DEPTH", "depth", "reads in flight at the storage at once"),
    Setting("lookahead", "PRISMAIO_LOOKAHEAD", "lookahead", "samples announced ahead of use"),
    Setting("engine", "PRISMAIO_ENGINE", "engine", "address of a running engine to join"),
    Setting("disable", "PRISMAIO_DISABLE", "disable", "plain direct reads, no engine"),
    Setting("source", "PRISMAIO_SOURCE", "source", "how files are read: threads or io_uring"),
    Setting("log", "PRISMAIO_LOG", "log", "file that a started engine writes to"),
)

# Set by PRISMA's own programs for their children; no settings, and no mistakes either.
INTERNAL_VARIABLES = frozenset(
    {"PRISMAIO_BENCH_DATA", "PRISMAIO_BENCH_RUN", "PRISMAIO_PROGRAM", "PRISMAIO_SLOWFS"}
)


class Settings(NamedTuple):
    """The settings in force. Made by `resolve()`, which has checked every value."""

    memory_bytes: int  # the whole buffer takes no more
    depth: int  # reads in flight
    lookahead: int  # samples
    engine: str | None  # an abstract Unix socket name, or a path if it begins with "/"
    disable: bool
    source: str  # one of SOURCES
    log: str | None  # an absolute path
    origins: Mapping[str, str]  # by the name of the setting: where its value came from


class _Given(NamedTuple):
    """What somebody gave for a setting; `value` is None when nobody gave anything."""

    name: str
    variable: str
    value: object
    from_environment: bool

    @property
    def origin(self) -> str:
        return f"environment ({self.variable})" if self.from_environment else "argument"

    def wrong(self, why: str) -> SettingError:
        return SettingError(f"{self.name}={self.value!r} (from {_the(self.origin)}): {why}")


def resolve(**arguments: object) -> Settings:
    """Settings from these arguments, the environment as it is now, and defaults for the rest.

    Args:
        arguments: By the names in `SETTINGS`; None means not given.

    Raises:
        SettingError: If a name is unknown or a value cannot work.
    """
    _reject_unknown(arguments)
    given = {setting.name: _given(setting, arguments) for setting in SETTINGS}
    origins = {name: one.origin for name, one in given.items()}

    def value(name: str, read: Callable[[_Given], _Value], default: _Value, why: str) -> _Value:
        if given[name].value is not None:
            return read(given[name])
        origins[name] = why
        return default

    disable = value("disable", _read_switch, False, "default")
    return Settings(
        # The off switch works wherever a program runs: with it, no limit of the place matters.
        memory_bytes=value("memory", _memory_reader(disable), *_default_memory()),
        depth=value("depth", _depth_reader(disable), *_default_depth()),
        lookahead=value("lookahead", _read_lookahead, DEFAULT_LOOKAHEAD, "default"),
        engine=value("engine", _read_address, None, "default"),
        disable=disable,
        source=value("source", _read_source, SOURCES[0], "default"),
        log=value("log", _read_log, None, "default"),
        origins=origins,
    )


def resolve_knobs(*, depth: object, buffer_bytes: object, **mistyped: object) -> tuple[int, int]:
    """Depth and bytes that a running engine is to be set to; 0 for one that is None.

    Raises:
        SettingError: If a value cannot work, or something else is given.
    """
    for name in mistyped:
        advice = _nearest(name, ("depth", "buffer_bytes"))
        raise SettingError(f"{name!r} (argument) is not a knob: {advice}")
    reads, room = (
        _Given(name, "", value, from_environment=False)
        for name, value in (("depth", depth), ("buffer_bytes", buffer_bytes))
    )
    return (
        0 if depth is None else _depth_reader(disabled=False)(reads),
        0 if buffer_bytes is None else _memory_reader(disabled=False)(room),
    )


def _given(setting: Setting, arguments: Mapping[str, object]) -> _Given:
    argument = arguments.get(setting.name)
    if argument is not None:
        return _Given(setting.name, setting.variable, argument, from_environment=False)
    # An empty variable counts as none, as in a shell.
    text = os.environ.get(setting.variable, "").strip() or None
    return _Given(setting.name, setting.variable, text, from_environment=True)


def _reject_unknown(arguments: Mapping[str, object]) -> None:
    names = [setting.name for setting in SETTINGS]
    for name in arguments:
        if name not in names:
            raise SettingError(f"{name!r} (argument) is not a setting: {_nearest(name, names)}")
    variables = [setting.variable for setting in SETTINGS]
    for name in os.environ:
        if name.startswith("PRISMAIO_") and name not in {*variables, *INTERNAL_VARIABLES}:
            advice = _nearest(name, variables)
            raise SettingError(f"{name} (environment variable) is not a setting: {advice}")


def _nearest(name: str, valid: Iterable[str]) -> str:
    import difflib  # only those who mistype pay for it

    same_case = {one.lower(): one for one in valid}
    near = difflib.get_close_matches(name.lower(), same_case, n=1, cutoff=0.6)
    if near:
        return f"did you mean {same_case[near[0]]}?"
    return f"there are {', '.join(same_case.values())}"


def _default_memory() -> tuple[int, str]:
    from prismaio.container import memory_limit

    limit = memory_limit()
    share_bytes = max(limit.limit_bytes // 4, LEAST_MEMORY_BYTES)
    if share_bytes >= DEFAULT_MEMORY_BYTES:
        return DEFAULT_MEMORY_BYTES, "default"
    return share_bytes, f"default (a quarter of the {_limit_text(*limit)})"


def _default_depth() -> tuple[int, str]:
    most, limit = _most_depth()
    if most >= DEFAULT_DEPTH:
        return DEFAULT_DEPTH, "default"
    return most, f"default (what a limit of {limit} open files leaves)"


def _most_depth() -> tuple[int, int]:
    """The most reads in flight that the descriptor limit leaves room for, and that limit."""
    from prismaio.container import descriptor_limit

    limit = descriptor_limit()
    return min(max(limit - RESERVED_DESCRIPTORS, 1), MOST_DEPTH), limit


def _memory_reader(disabled: bool) -> Callable[[_Given], int]:
    def read(given: _Given) -> int:
        size_bytes = _size(given)
        if size_bytes < LEAST_MEMORY_BYTES:
            raise given.wrong('too small to read ahead in: give at least "1MiB"')
        if not disabled:
            _check_memory_fits(given, size_bytes)
        return size_bytes

    return read


def _size(given: _Given) -> int:
    if not isinstance(given.value, str):
        return _whole_number(given, 'bytes as a whole number or a size such as "2GiB"')
    try:
        return parse_size(given.value)
    except ValueError as error:
        raise given.wrong(str(error)) from None


def _check_memory_fits(given: _Given, size_bytes: int) -> None:
    from prismaio.container import memory_limit

    limit = memory_limit()
    if size_bytes > limit.limit_bytes:
        raise given.wrong(
            f"more than the {_limit_text(*limit)}: give less, "
            f"leave it out for {format_size(_default_memory()[0])}, or raise that limit"
        )


def _depth_reader(disabled: bool) -> Callable[[_Given], int]:
    def read(given: _Given) -> int:
        depth = _within(given, 1, MOST_DEPTH, "reads in flight")
        most, limit = _most_depth()
        if depth > most and not disabled:
            raise given.wrong(
                f"each read in flight takes a file descriptor, and the limit of {limit} open "
                f"files leaves room for {most}: give at most {most}, or raise it (ulimit -n)"
            )
        return depth

    return read


def _read_lookahead(given: _Given) -> int:
    return _within(given, 1, MOST_LOOKAHEAD, "samples")


def _within(given: _Given, least: int, most: int, what: str) -> int:
    number = _whole_number(given, f"a whole number of {what}")
    if not least <= number <= most:
        raise given.wrong(f"must be from {least} to {most} {what}")
    return number


def _whole_number(given: _Given, what: str) -> int:
    value = given.value
    try:
        if isinstance(value, bool) or (isinstance(value, str) and not given.from_environment):
            raise TypeError
        return int(value) if isinstance(value, str) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        got = "" if given.from_environment else f", not {type(value).__name__}"
        raise given.wrong(f"must be {what}{got}") from None


def _read_switch(given: _Given) -> bool:
    if isinstance(given.value, bool):
        return given.value
    text = given.value.lower() if given.from_environment and isinstance(given.value, str) else None
    if text not in {*_TRUE, *_FALSE}:
        raise given.wrong("must be " + ("1 or 0" if given.from_environment else "True or False"))
    return text in _TRUE


def _read_address(given: _Given) -> str:
    if not isinstance(given.value, str):
        raise given.wrong(f"must be an engine's address as text, not {type(given.value).__name__}")
    address = given.value.removeprefix("@")  # how ss and netstat show abstract names
    length = len(os.fsencode(address))
    if not 0 < length <= LONGEST_ABSTRACT_NAME or "\0" in address:
        raise given.wrong(
            f"must be the address of an engine, 1 to {LONGEST_ABSTRACT_NAME} bytes without "
            "zero bytes: a name, or a path that begins with /"
        )
    return address


def _read_source(given: _Given) -> str:
    if given.value in SOURCES:
        return str(given.value)
    if isinstance(given.value, str):
        raise given.wrong(f"is no source of bytes: {_nearest(given.value, SOURCES)}")
    raise given.wrong(f"must be one of {', '.join(SOURCES)}, not {type(given.value).__name__}")


def _read_log(given: _Given) -> str:
    from pathlib import Path

    if not isinstance(given.value, (str, os.PathLike)) or not os.fspath(given.value):
        raise given.wrong(f"must be the path of a file, not {type(given.value).__name__}")
    # The engine works in /: only here it is known what a relative path means.
    path = Path.cwd() / os.fsdecode(given.value)
    if "\0" in str(path) or path.is_dir() or not path.parent.is_dir():
        raise given.wrong(f"{str(path)!r} must name a file in a directory that exists")
    return str(path)


def _limit_text(limit_bytes: int, what: str) -> str:
    return f"{format_size(limit_bytes)} that {what} has"


def _the(origin: str) -> str:
    return f"the {origin}"
