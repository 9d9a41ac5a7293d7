"""What a container allows, read from made-up control groups."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from prismaio.container import descriptor_limit, memory_limit
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
    assert memory_limit(str(machine(tmp_path, mount, group, limits))).limit_bytes == expected


@pytest.mark.parametrize(
    ("mount", "group", "limits", "expected"),
    [
        pytest.param(
            V2,
            "0::/a/b/c",
            {
                "sys/fs/cgroup/a/memory.max": 3 * GIB,
                "sys/fs/cgroup/a/b/memory.max": GIB,
                "sys/fs/cgroup/a/b/c/memory.max": 2 * GIB,
            },
            GIB,
            id="the smallest is in the middle",
        ),
        pytest.param(
            V2,
            "0::/a",
            {"sys/fs/cgroup/a/memory.max": "max", "sys/fs/cgroup/a/memory.high": GIB},
            GIB,
            id="the kernel stalls a group before it kills it",
        ),
        pytest.param(
            V2,
            "0::/",
            {"sys/fs/cgroup/memory.max": GIB},
            GIB,
            id="a namespace shows the container's own group as the root",
        ),
        pytest.param(
            V2.replace(" / ", " /docker/7 ", 1),
            "0::/docker/7/job",
            {"sys/fs/cgroup/job/memory.max": GIB, "sys/fs/cgroup/memory.max": 2 * GIB},
            GIB,
            id="a mount shows a part of the tree",
        ),
        pytest.param(
            V1.replace(" / ", " /docker/7 ", 1),
            "5:memory:/docker/7",
            {"sys/fs/cgroup/memory/memory.limit_in_bytes": GIB},
            GIB,
            id="a container of version 1",
        ),
        pytest.param(
            V2,
            "0::/../../elsewhere",
            {"sys/fs/cgroup/memory.max": GIB, "elsewhere/memory.max": 1},
            GIB,
            id="the group lies outside of what is seen",
        ),
        pytest.param(
            V2.replace("/sys/fs/cgroup", "/my\\040groups"),
            "0::/a",
            {"my groups/a/memory.max": GIB},
            GIB,
            id="a mount point with a space",
        ),
        pytest.param(
            "\n".join([V1, V2]),
            "5:cpu,memory:/one\n0::/two",
            {
                "sys/fs/cgroup/memory/one/memory.limit_in_bytes": 2 * GIB,
                "sys/fs/cgroup/two/memory.max": GIB,
            },
            GIB,
            id="both versions at once",
        ),
        pytest.param(
            V1,
            "5:cpu:/job\n4:memory:/other",
            {"sys/fs/cgroup/memory/job/memory.limit_in_bytes": GIB},
            8 * GIB,
            id="another controller's group does not count",
        ),
        pytest.param(V2, "", {"sys/fs/cgroup/memory.max": GIB}, 8 * GIB, id="no group at all"),
        pytest.param("odd line", "odd", {}, 8 * GIB, id="what nobody can read"),
    ],
)
def test_a_limit_is_found_wherever_the_tree_shows_it(
    tmp_path: Path, mount: str, group: str, limits: dict[str, object], expected: int
) -> None:
    assert memory_limit(str(machine(tmp_path, mount, group, limits))).limit_bytes == expected


def test_a_limit_says_whose_it_is(tmp_path: Path) -> None:
    limits: dict[str, object] = {"sys/fs/cgroup/memory.max": GIB}
    assert memory_limit(str(machine(tmp_path / "a", V2, "0::/", limits))).what == "this container"
    assert memory_limit(str(machine(tmp_path / "b", V2, "0::/", {}))).what == "this machine"


def test_without_proc_a_small_machine_is_assumed(tmp_path: Path) -> None:
    assert memory_limit(str(tmp_path)).limit_bytes == GIB


def test_descriptors_are_counted_by_the_soft_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
        assert descriptor_limit() == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_this_machine_has_a_limit() -> None:
    assert memory_limit().limit_bytes > 0
