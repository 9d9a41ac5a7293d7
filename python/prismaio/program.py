"""The name by which the processes of a program find their engine.

It stands in the environment, where children of every kind inherit it, as long as the program is
connected. It is the name of a job or a random one, and no engine's address: where the engine has
ended, whoever comes next starts another under the same name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from prismaio.fork_safe import ForkSafeLock

__all__ = ["VARIABLE", "Presence", "name_in"]

VARIABLE = "PRISMAIO_PROGRAM"

_lock = ForkSafeLock()
_named_by = 0  # the process that gave the name: its children inherit it and never take it away
_present = 0  # connections of that process


def name_in(environment: Mapping[str, str]) -> str | None:
    """What a process with this environment belongs to: a program, or else a job; None: neither."""
    return environment.get(VARIABLE) or _job(environment)


class Presence:
    """A program has its name from the first of these to the end of the last."""

    def __init__(self) -> None:
        global _named_by, _present
        with _lock:
            self._counts = VARIABLE not in os.environ or _named_by == os.getpid()
            if not self._counts:
                return
            if VARIABLE not in os.environ:
                os.environ[VARIABLE] = name_in(os.environ) or f"program:{os.urandom(16).hex()}"
                _named_by, _present = os.getpid(), 0
            _present += 1

    def end(self) -> None:
        """Takes the name away if this was the last: the next connection begins afresh."""
        global _named_by, _present
        with _lock:
            if not self._counts or _named_by != os.getpid():
                return
            self._counts = False
            _present -= 1
            if _present == 0:
                _named_by = 0
                os.environ.pop(VARIABLE, None)

    def __del__(self) -> None:
        self.end()


def _job(environment: Mapping[str, str]) -> str | None:
    run_id = environment.get("TORCHELASTIC_RUN_ID")
    if run_id and run_id != "none":  # which torchrun calls every run that was given no id
        return f"torchelastic:{run_id}"
    if slurm_id := environment.get("SLURM_JOB_ID"):
        return f"slurm:{slurm_id}"
    host, port = environment.get("MASTER_ADDR"), environment.get("MASTER_PORT")
    return f"master:{host}:{port}" if host and port else None
