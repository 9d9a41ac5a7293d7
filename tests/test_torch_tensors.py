"""Samples as tensors: written without harm when copied, in place when not."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import prismaio
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def prisma(tmp_path: Path) -> prismaio.Prisma:
    (tmp_path / "some").write_bytes(bytes(range(200)))
    (tmp_path / "none").write_bytes(b"")
    return prismaio.connect(memory="4MiB")


@pytest.mark.parametrize("copy", [True, False])
def test_it_has_the_bytes_of_its_sample(
    prisma: prismaio.Prisma, tmp_path: Path, copy: bool
) -> None:
    from prismaio.torch import tensor

    with prisma, warnings.catch_warnings():
        warnings.simplefilter("error")
        for sample in prisma.iterate([tmp_path / "some", tmp_path / "none"]):
            made = tensor(sample, copy=copy)
            assert made.dtype is torch.uint8
            assert made.tolist() == list(bytes(sample))


def test_a_copy_can_be_written_and_the_sample_stays(
    prisma: prismaio.Prisma, tmp_path: Path
) -> None:
    from prismaio.torch import tensor

    with prisma:
        sample = next(prisma.iterate([tmp_path / "some"]))
        tensor(sample).zero_()
        assert bytes(sample) == bytes(range(200))


def test_without_a_copy_the_room_is_taken_until_the_tensor_is_gone(
    prisma: prismaio.Prisma, tmp_path: Path
) -> None:
    from prismaio.torch import tensor

    with prisma:
        sample = next(prisma.iterate([tmp_path / "some"]))
        assert sample.is_shared
        made = tensor(sample, copy=False)
        del sample
        gc.collect()
        assert made.tolist() == list(range(200))
