"""A program that reads until it is killed: python -m trials.trainer JSON.

Prints a line once each of its processes has read something. Its workers end, as those of the
frameworks do, when they find their parent gone.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import sys
from multiprocessing.connection import Connection

import prismaio


def main(words: dict[str, object]) -> None:
    """Reads for ever, in this process and in workers."""
    paths, workers, method = words["paths"], words["workers"], words["method"]
    assert isinstance(paths, list)
    assert isinstance(workers, int)
    context = multiprocessing.get_context(str(method))
    with prismaio.connect(memory="4MiB", depth=4) as prisma:
        samples = prisma.iterate(itertools.cycle(paths))
        next(samples)
        ends = []
        for number in range(workers):
            mine, theirs = context.Pipe()
            arguments = (prisma, paths[number:] + paths[:number], theirs, os.getpid())
            context.Process(target=work, args=arguments, daemon=True).start()  # type: ignore[attr-defined]
            theirs.close()
            ends.append(mine)
        pids = [end.recv() for end in ends]
        print(json.dumps([prisma.stats()["engine_pid"], *pids]), flush=True)
        held = [next(samples) for _ in range(3)]
        for sample in samples:
            held = [*held[1:], sample]


def work(prisma: prismaio.Prisma, paths: list[str], end: Connection, parent: int) -> None:
    """What a worker does; quiet where an interrupt of the terminal meets it too."""
    try:
        for number, _ in enumerate(prisma.iterate(itertools.cycle(paths))):
            if number == 0:
                end.send(os.getpid())
            if os.getppid() != parent:
                return
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
