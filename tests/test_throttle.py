"""prismaio.testing.BlkioThrottle: the cap holds for a program and its children, then is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prismaio.testing import BlkioThrottle, drop_from_cache

GROUPS = Path("/sys/fs/cgroup/blkio")
TIMED = """
import subprocess, sys, time
if sys.argv[1] == "child":
    sys.exit(subprocess.call([sys.executable, *sys.argv[2:]]))
start = time.perf_counter()
for path in sys.argv[1:]:
    open(path, "rb", buffering=0).read()
print(time.perf_counter() - start)
"""


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[Path]]:
    reason = BlkioThrottle.available(tmp_path)
    if reason is not None:
        pytest.skip(reason)
    paths = [tmp_path / str(number) for number in range(40)]
    for path in paths:
        path.write_bytes(os.urandom(100_000))
    yield paths
    assert list(GROUPS.glob(f"prismaio-{os.getpid()}-*")) == []


def seconds(throttle: BlkioThrottle, files: list[Path], *, by_child: bool = False) -> float:
    """How long a program takes to read files that are in no cache."""
    drop_from_cache(files)
    script = files[0].parent / "timed.py"
    script.write_text(TIMED)
    command = [sys.executable, str(script), *(["child", str(script)] if by_child else [])]
    done = subprocess.run(
        throttle.command([*command, *map(str, files)]), stdout=subprocess.PIPE, check=True
    )
    return float(done.stdout)


@pytest.mark.parametrize("by_child", [False, True])
def test_bytes_per_second_stay_below_the_cap(files: list[Path], by_child: bool) -> None:
    with BlkioThrottle(files[0], bytes_per_s=8e6) as throttle:
        assert 0.35 < seconds(throttle, files, by_child=by_child) < 1.5  # 4 MB


def test_reads_per_second_stay_below_the_cap(files: list[Path]) -> None:
    with BlkioThrottle(files[0], reads_per_s=60) as throttle:
        assert 0.45 < seconds(throttle, files) < 2


def test_without_a_cap_reads_are_not_held_back(files: list[Path]) -> None:
    with BlkioThrottle(files[0]) as throttle:
        assert seconds(throttle, files) < 0.3


def test_a_process_that_outlives_the_block_goes_on_and_the_group_is_removed(
    files: list[Path],
) -> None:
    with BlkioThrottle(files[0], bytes_per_s=1e6) as throttle:
        program = subprocess.Popen(
            throttle.command(["sh", "-c", "echo in; read line"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert program.stdout is not None
        assert program.stdout.readline() == b"in\n"
    assert list(GROUPS.glob(f"prismaio-{os.getpid()}-*")) == []
    program.communicate(b"\n")
    assert program.returncode == 0


def test_groups_of_processes_that_were_killed_are_swept_up(files: list[Path]) -> None:
    code = (
        "import os, signal, sys\n"
        "from prismaio.testing import BlkioThrottle\n"
        "BlkioThrottle(sys.argv[1]).__enter__()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", code, files[0]])
    program.wait()
    assert list(GROUPS.glob(f"prismaio-{program.pid}-*")) != []
    with BlkioThrottle(files[0]):
        assert list(GROUPS.glob(f"prismaio-{program.pid}-*")) == []


def test_it_says_why_it_is_not_available() -> None:
    assert BlkioThrottle.available("/proc") is not None
    with pytest.raises(ValueError, match="does not lie on a disk"):
        BlkioThrottle("/proc")
