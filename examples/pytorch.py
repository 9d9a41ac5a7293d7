"""Reads a folder of files through a PyTorch DataLoader, plainly and accelerated, and compares.

python examples/pytorch.py FOLDER [WORKERS]
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path

import torch
from prismaio.testing import drop_from_cache
from prismaio.torch import accelerate
from torch.utils.data import DataLoader, Dataset


class Files(Dataset[bytes]):
    def __init__(self, folder: Path) -> None:
        self.samples = [(path, 0) for path in sorted(folder.rglob("*")) if path.is_file()]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> bytes:
        return self.samples[index][0].read_bytes()


def epoch(loader: DataLoader[bytes]) -> str:
    """Reads everything once; returns a digest of all bytes in their order."""
    digest = hashlib.sha256()
    start = time.perf_counter()
    for batch in loader:
        for content in batch:
            digest.update(content)
    print(f"  {time.perf_counter() - start:.2f} s")
    return digest.hexdigest()


def main(folder: Path, workers: int) -> int:
    files = Files(folder)
    digests = set()
    for name in ("plain", "accelerated"):
        drop_from_cache([folder])
        torch.manual_seed(0)
        loader = DataLoader(files, 32, shuffle=True, num_workers=workers, collate_fn=list)
        print(f"{name}: {len(files)} files, {workers} workers, from a cold cache")
        digests.add(epoch(accelerate(loader) if name == "accelerated" else loader))
    print("the same bytes in the same order" if len(digests) == 1 else "DIFFERENT BYTES")
    return len(digests) - 1


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="A DataLoader, plainly and accelerated.")
    arguments.add_argument("folder", type=Path, help="whose files are read, all of them")
    arguments.add_argument("workers", type=int, nargs="?", default=0, help="of the DataLoader")
    given = arguments.parse_args()
    sys.exit(main(given.folder, given.workers))
