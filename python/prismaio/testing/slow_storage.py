"""A directory as if it lay on slow storage: the same names and bytes, later."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypedDict
from urllib.parse import unquote_to_bytes

from prismaio.testing.slow_mount import SlowMount, quoted, reason_against

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Fault", "SlowStorage", "Slowness"]

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Slowness(TypedDict, total=False):
    """How slow storage is. All are 0 or off by default; any can change while it is in use."""

    open_delay_s: float
    read_delay_s: float  # per read request; the kernel asks for a small file in one
    stat_delay_s: float  # per lookup of a name and per stat
    jitter_share: float  # the part of each delay that is random; its mean stays
    jitter: Literal["uniform", "exponential"]
    spike_share: float  # the share of reads that take `spike_factor` times as long
    spike_factor: float
    bytes_per_s: float  # a cap over all reads
    reads_per_s: float
    seed: int  # with the same one, the same requests are slow, in whatever order they come
    keep_cache: bool  # else every open is cold
    direct_io: bool  # every read call arrives as it is: nothing is read ahead or merged
    attr_timeout_s: float  # how long the kernel may remember names and sizes; 1 by default


class Fault:
    """Something that goes wrong on purpose until `drop` is called, or its block is left."""

    def __init__(self, mount: SlowMount, number: int) -> None:
        self._mount = mount
        self._number = number

    def drop(self) -> None:
        """Ends it. What it holds goes on."""
        self._mount.ask(f"drop id={self._number}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mount.alive:
            self.drop()


class SlowStorage:
    """Mounts a directory read-only, slower than it is, while the block runs.

    The mount ends with the block, and with this process however it ends. A forked child sees the
    mount, but does not end it by leaving the block.

        with SlowStorage("photos", open_delay_s=0.005) as slow:
            train(slow.path)
            print(slow.counters()["opens"])
    """

    def __init__(
        self,
        source: AnyPath,
        *,
        threads: int = 16,
        max_read_bytes: int = 1 << 20,
        allow_other: bool = False,
        **slowness: Unpack[Slowness],
    ) -> None:
        """Prepares; nothing is mounted before the block is entered.

        Args:
            source: The directory to show.
            threads: How many requests are worked on at once. Any number can wait for its delay.
            max_read_bytes: The largest read request. (The kernel reads ahead 128 KiB at a time.)
            allow_other: Lets other users in, where the system allows that.
            **slowness: See `Slowness`.
        """
        self._source = os.path.realpath(os.fsencode(source))
        self._options = {
            "threads": threads,
            "max-read": max_read_bytes,
            "allow-other": allow_other,
        }
        self._slowness = slowness
        self._mount: SlowMount | None = None

    @staticmethod
    def available() -> str | None:
        """None where slow storage can be had, otherwise the reason why not."""
        return reason_against()

    @property
    def path(self) -> Path:
        """Where the directory is seen slowly."""
        return self._mounted().path

    def change(self, **slowness: Unpack[Slowness]) -> None:
        """Makes storage slower or faster from now on; settings not named stay."""
        self._mounted().ask(f"set {_words(slowness)}")

    def counters(self) -> dict[str, float]:
        """What was asked of the storage since it was mounted, or since `reset_counters`.

        opens, reads, read_bytes, stats, lookups, opendirs, readdirs, errors; reads_in_flight (now),
        reads_in_flight_max, reads_in_flight_mean (over the time from the first read to the last),
        and the same three for requests_in_flight, which are opens and reads.
        """
        return {str(name): value for name, value in self._mounted().ask("counters").items()}

    def opens(self) -> dict[bytes, int]:
        """How often each file was opened, by its path below the mount."""
        answer = self._mounted().ask("opens")
        return {unquote_to_bytes(path): int(opens) for path, opens in answer.items()}

    def reset_counters(self) -> None:
        """Sets everything counted to zero; delays drawn at random start over too."""
        self._mounted().ask("reset")

    def fault(
        self,
        glob: str | bytes,
        *,
        at: Literal["open", "read", "stat"] = "open",
        error: int | None = None,
        delay_s: float | None = None,
        short_bytes: int | None = None,
        end_at: int | None = None,
        times: int | None = None,
    ) -> Fault:
        """Lets something go wrong at the files that a pattern matches.

        A file that is open keeps to how it was opened: add faults of reading before that.

        Args:
            glob: Of the path below the mount; '*' matches '/' too.
            at: Which requests; `stat` means lookups too.
            error: The errno they fail with.
            delay_s: Seconds on top of every other delay. A kill ends the wait.
            short_bytes: Reads give no more bytes than this at once.
            end_at: Reads find the end of file here, whatever size stat gives.
            times: How often, for each file; then it works. For ever by default.
        """
        effects = {
            "error": error,
            "delay_s": delay_s,
            "short_bytes": short_bytes,
            "end_at": end_at,
            "times": times,
        }
        return self._add_rule(glob, at, effects)

    def hold(self, glob: str | bytes, *, at: Literal["open", "read", "stat"] = "open") -> Fault:
        """Keeps requests waiting until the fault is dropped. A kill ends the wait."""
        return self._add_rule(glob, at, {"hold": True})

    def __enter__(self) -> Self:
        if self._mount is not None:
            raise ValueError("slow storage is mounted already")
        options = [f"--{name}={quoted(value)}" for name, value in self._options.items()]
        self._mount = SlowMount(self._source, [*options, *_words(self._slowness).split()])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        mount, self._mount = self._mounted(), None
        mount.end()

    def _mounted(self) -> SlowMount:
        if self._mount is None:
            raise ValueError("slow storage is mounted only while its block runs")
        return self._mount

    def _add_rule(self, glob: str | bytes, at: str, effects: dict[str, float | None]) -> Fault:
        words = _words({name: value for name, value in effects.items() if value is not None})
        mount = self._mounted()
        answer = mount.ask(f"rule glob={quoted(glob)} at={at} {words}")
        return Fault(mount, int(answer["id"]))


def _words(settings: object) -> str:
    assert isinstance(settings, dict)
    return " ".join(f"{name}={quoted(value)}" for name, value in settings.items())
