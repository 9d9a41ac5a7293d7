"""Counting system calls between two marks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import traced
from benchmarks.building import ROOT

TRACE = """\
openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3
write(-1, "begin", 5)                   = -1 EBADF (Bad file descriptor)
futex(0x7f0000000000, FUTEX_WAIT, 1, {tv_sec=0, tv_nsec=100000000}) = 0
clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=200000}, NULL) = 0
write(4, "\\1\\0\\0\\0\\0\\0\\0\\0", 8)    = 8
--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
write(-1, "end", 3)                     = -1 EBADF (Bad file descriptor)
exit_group(0)                           = ?
"""


def test_only_what_lies_between_the_marks_counts_and_waiting_does_not() -> None:
    assert traced.calls_between_marks(TRACE.splitlines()) == {"futex": 1, "write": 1}


@pytest.mark.skipif(traced.available() is not None, reason=str(traced.available()))
def test_the_calls_of_a_program_are_counted() -> None:
    program = """
import os
from benchmarks.traced import mark
os.getppid()
mark("begin")
for _ in range(7):
    os.getppid()
mark("end")
os.getppid()
print("done")
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    said, calls = traced.run([sys.executable, "-c", program], environment)
    assert said == "done\n"
    assert calls["getppid"] == 7
