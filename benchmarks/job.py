"""What one contender is told to do, in one process of its own."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Mode = Literal["time", "digest", "memory"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One pass over the data."""

    contender: str  # "name" or "name:argument"
    listed: str  # a file of paths, each ended by a zero byte, in the order wanted
    mode: Mode = "time"
    memory: str = "256MiB"
    depth: int | None = None
    stream: bool = False

    @property
    def kind(self) -> str:
        """The contender's name without its argument."""
        return self.contender.partition(":")[0]

    @property
    def argument(self) -> str:
        """What stands after the colon."""
        return self.contender.partition(":")[2]

    def paths(self) -> list[str]:
        """The files to read."""
        return read_list(Path(self.listed))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        return Job(**json.loads(text))


def read_list(path: Path) -> list[str]:
    """The paths in a list."""
    return path.read_bytes().decode().split("\0")[:-1]


def write_list(path: Path, paths: list[str]) -> None:
    """Writes a list that `read_list` and prisma-rawread read."""
    path.write_bytes("".join(f"{one}\0" for one in paths).encode())
