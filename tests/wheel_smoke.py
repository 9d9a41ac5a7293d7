"""The program that a wheel must run where there is nothing but the wheel (see tools/wheels.py)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import prismaio

with tempfile.TemporaryDirectory() as folder:
    paths = [Path(folder) / f"{number}.bin" for number in range(20)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * (1000 * number))
    if hasattr(prismaio, "connect"):
        with prismaio.connect(memory="64MiB") as prisma:
            read = [bytes(sample) for sample in prisma.iterate(paths)]
        assert read == [path.read_bytes() for path in paths]
