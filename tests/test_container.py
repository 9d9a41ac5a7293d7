"""What a container allows, read from made-up control groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from prismaio.container import memory_limit
from prismaio.sizes import GIB

V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw"
V1 = "31 24 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory"
HUGE = 9223372036854771712  # what version 1 says for "no limit"


def machine(root: Path, mount: str, group: str, limits: dict[str, object]) -> Path:
    """A tree like a machine of 8 GiB with one hierarchy of control groups."""
    files: dict[str, object] = {
        "proc/meminfo": "MemTotal: 8388608 kB\n",
        "proc/self/mountinfo": mount + "\n",
        "proc/self/cgroup": group + "\n",
        **limits,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("mount", "group", "limits", "expected"),
    [
        (V2, "0::/jobs/mine", {"sys/fs/cgroup/jobs/memory.max": GIB}, GIB),
        (V2, "0::/jobs/mine", {"sys/fs/cgroup/jobs/mine/memory.max": "max"}, 8 * GIB),
        (V1, "5:memory:/job", {"sys/fs/cgroup/memory/job/memory.limit_in_bytes": 3 * GIB}, 3 * GIB),
        (V1, "5:memory:/job", {"sys/fs/cgroup/memory/job/memory.limit_in_bytes": HUGE}, 8 * GIB),
    ],
)
def test_the_smallest_limit_up_the_tree_counts(
    tmp_path: Path, mount: str, group: str, limits: dict[str, object], expected: int
) -> None:
    assert memory_limit(machine(tmp_path, mount, group, limits)).limit_bytes == expected


def test_this_machine_has_a_limit() -> None:
    assert memory_limit().limit_bytes > 0
