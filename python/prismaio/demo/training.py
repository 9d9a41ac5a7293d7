"""Trains LeNet on a folder of images: the program that each run of the demo is a process of.

    python -m prismaio.demo.training '{"folder": ..., "workers": 2, ...}'

What happens goes to standard output, one JSON object a line: a start, steps, an end.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from prismaio.demo.image_folder import find_images
from prismaio.demo.runs import Task

__all__ = ["Images", "LeNet", "main", "make_loader", "train", "weight_digest"]

SIDE = 32  # pixels that LeNet sees


class Step(NamedTuple):
    """One step of training."""

    samples: int
    wait_s: float  # until the batch was there
    compute_s: float
    loss: float


class Images(Dataset[tuple[Tensor, int]]):
    """Images in one folder per class, small and randomly mirrored."""

    def __init__(self, folder: str, limit: int = 0) -> None:
        self.samples, self.classes = _some_images(folder, limit)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, label = self.samples[index]
        with Image.open(path) as image:
            image.draft("RGB", (2 * SIDE, 2 * SIDE))  # JPEGs are decoded at a fraction of the size
            small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        pixels = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8)
        picture = pixels.view(SIDE, SIDE, 3).permute(2, 0, 1).float() / 127.5 - 1
        if torch.rand(()) < 0.5:
            picture = picture.flip(2)
        return picture, label


def _some_images(folder: str, limit: int) -> tuple[list[tuple[str, int]], list[str]]:
    """All images of a folder, or so many of them, spread over all classes."""
    samples, classes = find_images(Path(folder))
    if 0 < limit < len(samples):
        samples = [samples[i * len(samples) // limit] for i in range(limit)]
    return samples, classes


class LeNet(nn.Sequential):
    """LeNet-5 for colour images of 32 by 32 pixels.

    Source:
        Y. LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998.
    """

    def __init__(self, classes: int) -> None:
        super().__init__(
            nn.Conv2d(3, 6, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * 5 * 5, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, classes),
        )


def make_loader(images: Images, task: Task) -> DataLoader[Any]:
    """PyTorch's own loader, as a careful user would set it up."""
    return DataLoader(
        images,
        batch_size=task.batch,
        shuffle=True,
        num_workers=task.workers,
        persistent_workers=task.workers > 0 and task.epochs > 1,
    )


def train(model: nn.Module, loader: DataLoader[Any], epochs: int) -> Iterator[Step]:
    """Trains on every batch of the loader and tells how each step went."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for _ in range(epochs):
        asked = time.perf_counter()
        for pictures, labels in loader:
            came = time.perf_counter()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            done = time.perf_counter()
            yield Step(len(labels), came - asked, done - came, loss.item())
            asked = time.perf_counter()


def weight_digest(model: nn.Module) -> str:
    """A digest of every bit of a model's weights."""
    digest = hashlib.sha256()
    for name, weights in model.state_dict().items():
        digest.update(name.encode())
        digest.update(bytes(weights.contiguous().view(torch.uint8).flatten().tolist()))
    return digest.hexdigest()


def main() -> None:
    """Trains as the command line says."""
    task = Task(**json.loads(sys.argv[1]))
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    images = Images(task.folder, task.limit)
    torch.manual_seed(task.seed)
    model = LeNet(len(images.classes))
    steps = -(-len(images) // task.batch) * task.epochs
    _tell("start", steps=steps, samples=len(images), classes=len(images.classes))
    started = time.perf_counter()
    loader = make_loader(images, task)
    if task.through_prisma:
        from prismaio.torch import accelerate

        loader = accelerate(loader, memory=task.memory)
        _tell("engine", pid=loader.prisma.stats()["engine_pid"])
    for step in train(model, loader, task.epochs):
        _tell("step", **step._asdict())
    time_s = time.perf_counter() - started
    _tell("end", time_s=time_s, digest=weight_digest(model))


def _tell(what: str, **details: object) -> None:
    print(json.dumps({"what": what, **details}), flush=True)


if __name__ == "__main__":
    main()
