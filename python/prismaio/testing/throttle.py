"""A cap on what a group of processes may read from one disk, kept by the kernel."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BlkioThrottle"]

_ROOT = Path("/sys/fs/cgroup/blkio")
_numbers = itertools.count(1)

# Enters the group before the program starts, and so before it has any thread.
_ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


class BlkioThrottle:
    """Caps reads from the disk that a path lies on (control groups version 1, only as root).

    Only what the page cache does not have is counted: drop it first. The kernel holds back what
    exceeds the rate; it adds no latency below it, so more reads in flight do not help.

        with BlkioThrottle("photos", bytes_per_s=120e6, reads_per_s=1000) as throttle:
            subprocess.run(throttle.command([sys.executable, "train.py"]))
    """

    def __init__(
        self, path: str | os.PathLike[str], *, bytes_per_s: float = 0, reads_per_s: float = 0
    ) -> None:
        """Prepares; the group is there while the block runs. 0 means no cap."""
        self._device = _disk_of(Path(path))
        self._caps = {
            "blkio.throttle.read_bps_device": bytes_per_s,
            "blkio.throttle.read_iops_device": reads_per_s,
        }
        self._group = _ROOT / f"prismaio-{os.getpid()}-{next(_numbers)}"

    @staticmethod
    def available(path: str | os.PathLike[str] = "/") -> str | None:
        """None where reads from a path can be capped, otherwise the reason why not."""
        if not (_ROOT / "blkio.throttle.read_bps_device").exists():
            return f"no control group of version 1 for block devices at {_ROOT}"
        if not os.access(_ROOT, os.W_OK):
            return "only root may make control groups"
        try:
            _disk_of(Path(path))
        except ValueError as problem:
            return str(problem)
        return None

    def command(self, command: Sequence[str]) -> list[str]:
        """The command that runs another one, and all that it starts, under the cap."""
        return ["/bin/sh", "-c", _ENTER, str(self._group), *command]

    def __enter__(self) -> Self:
        reason = self.available()
        if reason is not None:
            raise RuntimeError(reason)
        _remove_orphans()
        self._group.mkdir()
        for name, value in self._caps.items():
            (self._group / name).write_text(f"{self._device} {int(value)}\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _remove(self._group)


def _disk_of(path: Path) -> str:
    """major:minor of the whole disk: the kernel knows no cap on a partition."""
    device = path.stat().st_dev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not folder.exists():
        raise ValueError(f"{path} does not lie on a disk")
    if (folder / "partition").exists():
        folder = folder.resolve().parent
    return (folder / "dev").read_text().strip()


def _remove(group: Path) -> None:
    """Lets go of processes that are still in it: they go on without a cap."""
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (_ROOT / "cgroup.procs").write_text(pid)
    group.rmdir()


def _remove_orphans() -> None:
    """Groups of processes that were killed before they could remove them."""
    for group in _ROOT.glob("prismaio-*-*"):
        if not Path("/proc", group.name.split("-")[1]).exists():
            with contextlib.suppress(OSError):  # somebody else was quicker
                _remove(group)
