"""A model that is trained through PRISMA is the model that is trained without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from prismaio.demo.training import Images, LeNet, train, weight_digest
from prismaio.testing import SlowStorage
from prismaio.torch import accelerate
from torch.utils.data import DataLoader

Loader = DataLoader[Any]
IMAGES = 48


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    noise = np.random.default_rng(0)
    for number in range(IMAGES):
        path = folder / f"class-{number % 3}" / f"{number:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        picture = noise.integers(0, 256, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(picture).save(path, quality=90)
    return folder


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """More of them wait for each other where other programs run too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def trained(folder: Path, wrap: Callable[[Loader], Loader], **options: Any) -> list[Any]:
    """The losses of three epochs, then the weights, then what the generators would draw next."""
    torch.manual_seed(1)
    images = Images(str(folder))
    model = LeNet(len(images.classes))
    loader = wrap(DataLoader(images, batch_size=5, shuffle=True, **options))
    losses = [step.loss for step in train(model, loader, 3)]
    return [losses, weight_digest(model), torch.rand(4).tolist()]


def plainly(loader: Loader) -> Loader:
    return loader


@pytest.mark.parametrize("workers", [0, 2, 4])
def test_weights_losses_and_generators_are_the_same(folder: Path, workers: int) -> None:
    plain = trained(folder, plainly, num_workers=workers)
    assert trained(folder, accelerate, num_workers=workers) == plain


@pytest.mark.timeout(120)
def test_they_are_the_same_with_spawned_workers(folder: Path) -> None:
    options = {"num_workers": 2, "persistent_workers": True}
    plain = trained(folder, plainly, **options)
    assert trained(folder, accelerate, multiprocessing_context="spawn", **options) == plain


@pytest.mark.skipif(SlowStorage.available() is not None, reason=str(SlowStorage.available()))
@pytest.mark.parametrize("workers", [0, 2])
def test_slow_storage_is_read_once_and_many_files_at_a_time(folder: Path, workers: int) -> None:
    with SlowStorage(folder, open_delay_s=0.02) as slow:
        plain = trained(slow.path, plainly, num_workers=workers)
        at_a_time_plainly = slow.counters()["requests_in_flight_max"]
        slow.reset_counters()
        assert trained(slow.path, accelerate, num_workers=workers) == plain
        assert slow.counters()["requests_in_flight_max"] >= max(8, 2 * at_a_time_plainly)
        assert set(slow.opens().values()) == {3}  # once an epoch
