"""One pass of one contender, in this process. The last line that it prints is what it found.

    python -m benchmarks.run_one '{"contender": "plain", "listed": "FILES", ...}'

In the mode "memory" it says "attached" once it could begin, and "read" before it lets go of
everything, and goes on when it gets a line.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time

from benchmarks.contenders import Contender, Figures, UnavailableError, contender_of
from benchmarks.job import Job


def main(job: Job) -> None:
    """Runs a job and prints its figures."""
    try:
        contender = contender_of(job)
    except UnavailableError as reason:
        print(json.dumps({"skipped": str(reason)}))
        return
    print(json.dumps(_run(contender, job)), flush=True)


def _run(contender: Contender, job: Job) -> dict[str, object]:
    paths = job.paths()
    if job.mode == "digest":
        return {"digest": _digest(contender, paths)}
    if job.mode == "memory":
        _hold_at_the_start(contender)
    cpu_before = _cpu_s()
    figures: Figures = contender.measure(paths)
    figures |= contender.counted()
    if job.mode == "memory":
        _pause("read")
    contender.close()
    return {**figures, "own_cpu_s": _cpu_s() - cpu_before}


def _cpu_s() -> float:
    """Of this process and of those that it waited for; the interpreter's own end is left out."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _hold_at_the_start(contender: Contender) -> None:
    """Starts early, so that what an idle contender takes can be told from what reading takes."""
    start = contender.start

    def started_already() -> None:
        return

    start()
    contender.start = started_already  # type: ignore[method-assign]
    _pause("attached")


def _pause(at: str) -> None:
    """Until whoever watches this process has looked at it."""
    print(at, flush=True)
    sys.stdin.readline()


def _digest(contender: Contender, paths: list[str]) -> str:
    """Of all bytes in order, and of where each sample ends."""
    found = hashlib.blake2b(digest_size=16)
    contender.start()
    for sample in contender.samples(paths):
        size = 0
        for piece in sample:
            view = memoryview(piece)  # type: ignore[arg-type]
            found.update(view)
            size += view.nbytes
            view.release()
        found.update(size.to_bytes(8, "little"))
    contender.close()
    return found.hexdigest()


if __name__ == "__main__":
    main(Job.from_json(sys.argv[1]))
