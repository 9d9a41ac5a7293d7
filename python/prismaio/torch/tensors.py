"""The bytes of a sample as a tensor."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from prismaio import Sample

__all__ = ["tensor"]


def tensor(sample: Sample, *, copy: bool = True) -> torch.Tensor:
    """The bytes of a sample, as uint8 of shape (len(sample),).

    Args:
        sample: From a Prisma.
        copy: Whether the tensor has memory of its own, and can be written. Without, it shows the
            sample's bytes in place and keeps their room taken; torch does not know that they can
            only be read: writing to it ends the process.

    Raises:
        OSError: If a large sample cannot be read.
    """
    if len(sample) == 0:
        return torch.empty(0, dtype=torch.uint8)
    if copy:
        return torch.frombuffer(bytearray(sample.view()), dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")
        return torch.frombuffer(sample.view(), dtype=torch.uint8)
