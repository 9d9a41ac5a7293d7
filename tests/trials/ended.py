"""Programs that are killed, interrupted or terminated at any moment leave nothing behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from prismaio import program
from prismaio.testing import SlowStorage

from trials import leftovers
from trials.suite import Case, Suite, expect, wait_for

__all__ = ["Interrupts", "InterruptsOfWaiting", "KilledPrograms", "KilledTrainers"]

TESTS = Path(__file__).parents[1]
GONE_WITHIN_S = 3.0
ENDS_WITHIN_S = 2.0


class Trainer:
    """A training program in an empty folder that is all it may write to."""

    def __init__(self, folder: Path, paths: list[Path], workers: int, method: str) -> None:
        self.name = uuid.uuid4().hex
        self._folder = folder
        self._shared_memory = leftovers.shared_memory()
        words = {"paths": list(map(str, paths)), "workers": workers, "method": method}
        self._stands_for = {program.VARIABLE: f"program:{self.name}"}
        places = dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"), str(folder))
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-m", "trials.trainer", json.dumps(words)],
            env=os.environ | places | self._stands_for | {"PYTHONPATH": str(TESTS)},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait_until_ready(self) -> list[int]:
        """Waits until each process has read something; the engine's and the workers' numbers."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        expect(line, "the trainer ended by itself")
        pids = json.loads(line)
        assert isinstance(pids, list)
        return pids

    def kill_all(self) -> None:
        """Everything at once: the engine too."""
        found = [self.process.pid, *(pid for pid, _ in leftovers.marked(self.name))]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def check_nothing_left(self) -> None:
        """Within 3 s: no process, no socket, no shared memory, no file."""
        wait_for(self._is_gone, "the end of its processes and socket", GONE_WITHIN_S)
        theirs = "pymp-"  # multiprocessing's own, which it leaves when it is killed
        left_files = [p.name for p in self._folder.iterdir() if not p.name.startswith(theirs)]
        expect(not left_files, f"files left: {left_files}")
        expect(leftovers.shared_memory() <= self._shared_memory, "shared memory left")

    def _is_gone(self) -> bool:
        """Looked at in this order: a socket may be all that tells of an engine that just starts."""
        return not leftovers.listens(self._stands_for) and not list(leftovers.marked(self.name))


class _Ended(Suite):
    batch = 10
    on_slow_storage = True
    limit_s = 40
    workers: ClassVar[list[int]] = [0, 2]

    def prepare(self) -> None:
        source = self.folder / "source"
        source.mkdir()
        chance = random.Random(f"files/{self.seed}")
        for number in range(40):
            (source / f"{number:02}").write_bytes(chance.randbytes(chance.randrange(50_000)))
        slow = SlowStorage(source, open_delay_s=0.002, jitter_share=1, seed=self.seed)
        self.slow = self.stack.enter_context(slow)
        self.paths = sorted(self.slow.path.iterdir())

    @contextmanager
    def trainer(self, chance: random.Random) -> Iterator[Trainer]:
        """One with that many workers, however they are started."""
        workers = chance.choice(self.workers)
        method = chance.choice(["fork", "fork", "spawn", "forkserver"])
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            trainer = Trainer(Path(folder), self.paths, workers, method)
            try:
                yield trainer
            finally:
                leftovers.end_all(trainer.name)
                trainer.process.communicate()


class KilledTrainers(_Ended):
    """The training program alone is killed: while it starts, or while it reads."""

    name = "kill-trainer"
    cases = 50

    def run(self, case: Case) -> None:
        chance = case.chance()
        with self.trainer(chance) as trainer:
            if chance.random() < 0.7:
                trainer.wait_until_ready()
            time.sleep(chance.uniform(0, 0.4))
            trainer.process.kill()
            trainer.process.wait()
            trainer.check_nothing_left()


class KilledPrograms(_Ended):
    """Trainer, workers and engine are killed at once."""

    name = "kill-all"
    cases = 50

    def run(self, case: Case) -> None:
        chance = case.chance()
        with self.trainer(chance) as trainer:
            if chance.random() < 0.7:
                trainer.wait_until_ready()
            time.sleep(chance.uniform(0, 0.4))
            trainer.kill_all()
            trainer.process.wait()
            trainer.check_nothing_left()


class Interrupts(_Ended):
    """SIGINT and SIGTERM end a training within 2 s, with one normal trace."""

    name = "interrupt"
    cases = 100

    def run(self, case: Case) -> None:
        chance = case.chance()
        number = chance.choice([signal.SIGINT, signal.SIGTERM])
        with self.trainer(chance) as trainer:
            trainer.wait_until_ready()
            self._end(trainer, number, chance)
        check_words(self.said, number)

    def _end(self, trainer: Trainer, number: int, chance: random.Random) -> None:
        time.sleep(chance.uniform(0, 0.4))
        sent = time.monotonic()
        if number == signal.SIGINT and chance.random() < 0.5:
            os.killpg(trainer.process.pid, number)  # as a terminal does
        else:
            trainer.process.send_signal(number)
        try:
            trainer.process.wait(20)
        except subprocess.TimeoutExpired:
            raise AssertionError("it did not end within 20 s") from None
        took_s = time.monotonic() - sent
        expect(took_s < ENDS_WITHIN_S, f"it took {took_s:.1f} s to end")
        status = trainer.process.returncode
        expect(status == -number, f"it ended with status {status}")
        trainer.check_nothing_left()
        assert trainer.process.stderr is not None
        self.said = trainer.process.stderr.read().decode()


class InterruptsOfWaiting(Interrupts):
    """The same while all of storage hangs."""

    name = "interrupt-hung"
    cases = 50
    workers: ClassVar[list[int]] = [
        0
    ]  # one that hangs cannot look for its parent, with or without PRISMA

    def _end(self, trainer: Trainer, number: int, chance: random.Random) -> None:
        with self.slow.hold("*"):  # dropped only after the end
            super()._end(trainer, number, chance)


def check_words(said: str, number: int) -> None:
    """One traceback, its last line the interrupt, and nothing else; nothing if terminated."""
    if number == signal.SIGTERM:
        expect(said == "", f"terminated, it said:\n{said}")
        return
    expect(said.count("Traceback") == 1, f"not one trace:\n{said}")
    expect(said.startswith("Traceback"), f"something before the trace:\n{said}")
    expect(said.rstrip().endswith("KeyboardInterrupt"), f"something after the trace:\n{said}")
