"""Long runs: memory, descriptors and threads of all processes stay what they were early on."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import random
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import prismaio

from trials.data import Wanted, make_files
from trials.suite import Case, Suite, expect

__all__ = ["Flat"]


OF_ITS_OWN = ("Pss_Anon:", "Pss_Shmem:")


class Taken(NamedTuple):
    """What some processes hold."""

    pss_bytes: int
    descriptors: int
    threads: int


def taken_by(*pids: int) -> Taken:
    """Memory that the allocator keeps for itself does not count."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    held = [_taken_by(pid) for pid in pids if pid]
    return Taken(*(sum(values) for values in zip(*held, strict=True)))


def _taken_by(pid: int) -> Taken:
    folder = Path(f"/proc/{pid}")
    rollup = (folder / "smaps_rollup").read_text().splitlines()
    # Not what is mapped of files: its share grows when another process that maps them ends.
    pss_kib = sum(int(line.split()[1]) for line in rollup if line.startswith(OF_ITS_OWN))
    descriptors, threads = (len(list((folder / name).iterdir())) for name in ("fd", "task"))
    return Taken(pss_kib << 10, descriptors, threads)


class Flat(Suite):
    """Values after a tenth of a run and at its end differ by less than 5 %."""

    name = "flat"
    cases = 5
    limit_s = 400

    def prepare(self) -> None:
        chance = random.Random(f"files/{self.seed}")
        source = self.folder / "source"
        source.mkdir()
        self.data = make_files(source, chance, [chance.randrange(20_000) for _ in range(200)])
        self.paths = [Wanted(self.data.path(name)) for name in self.data.files]

    def run(self, case: Case) -> None:
        runs = [
            self.connections,
            self.epochs,
            self.errors,
            self.kept_samples,
            self.few_descriptors,
        ]
        runs[case.number](case.share)

    def connections(self, share: float) -> None:
        """1,000 times created, used, closed."""

        def once() -> Taken | None:
            with prismaio.connect(memory="2MiB", depth=2) as prisma:
                samples = prisma.iterate(self.paths[:20])
                expect(len(list(samples)) == 20, "samples are missing")
            return taken_by(os.getpid())

        stays_flat(round(1000 * share), once)

    def epochs(self, share: float) -> None:
        """30 epochs of 2,000 samples."""
        with prismaio.connect(memory="2MiB", depth=4) as prisma:
            stays_flat(max(10, round(30 * share)), lambda: self._epoch(prisma, 10))

    def errors(self, share: float) -> None:
        """100,000 reads, 1 % of which fail."""
        failing = [Wanted(self.data.path(name)) for name in self.data.unreadable]
        with prismaio.connect(memory="2MiB", depth=4) as prisma:

            def once() -> Taken | None:
                paths = self.paths * 5
                for place in range(0, 1000, 100):
                    paths[place] = failing[place // 100 % len(failing)]
                samples = prisma.iterate(paths, on_error="skip")
                expect(sum(1 for _ in samples) == 990, "not all that can be read was")
                expect(len(samples.skipped) == 10, "not all that cannot be read was skipped")
                return taken_by(os.getpid(), prisma.stats()["engine_pid"])

            stays_flat(round(100 * share), once)

    def kept_samples(self, share: float) -> None:
        """Whoever keeps samples gets copies, and their end gives all back."""
        with prismaio.connect(memory="2MiB", depth=4) as prisma:

            def once() -> Taken | None:
                with contextlib.suppress(RuntimeWarning):
                    kept = list(prisma.iterate(self.paths))
                expect(len(kept) == 200, "samples are missing")
                del kept
                return taken_by(os.getpid(), prisma.stats()["engine_pid"])

            stays_flat(max(10, round(100 * share)), once)

    def few_descriptors(self, share: float) -> None:
        """With a soft limit of 64 descriptors, and many connections one after another."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        for _ in range(max(2, round(20 * share))):
            with prismaio.connect(memory="2MiB") as prisma:
                self._epoch(prisma, 2)
                expect(prisma.stats()["engine_pid"] != 0, "there was no engine")

    def _epoch(self, prisma: prismaio.Prisma, repeats: int) -> Taken:
        count = sum(1 for _ in prisma.iterate(self._repeated(repeats)))
        expect(count == 200 * repeats, f"{count} samples")
        return taken_by(os.getpid(), prisma.stats()["engine_pid"])

    def _repeated(self, repeats: int) -> Iterator[Wanted]:
        for _ in range(repeats):
            yield from self.paths


def stays_flat(times: int, once: Callable[[], Taken | None]) -> None:
    """Raises if what is held at the end is 5 % more than after a tenth of the run."""
    early: list[Taken] = []
    late: list[Taken] = []
    for number in range(times):
        taken = once()
        assert taken is not None
        if times // 10 <= number < 2 * (times // 10 or 1):
            early.append(taken)
        if number >= times - (times // 10 or 1):
            late.append(taken)
    before, after = (_median(values) for values in (early, late))
    expect(after.pss_bytes <= 1.05 * before.pss_bytes, f"memory grew: {before} to {after}")
    expect(after.descriptors <= before.descriptors, f"descriptors grew: {before} to {after}")
    expect(after.threads <= before.threads, f"threads grew: {before} to {after}")


def _median(values: list[Taken]) -> Taken:
    return Taken(*(sorted(one)[len(one) // 2] for one in zip(*values, strict=True)))
