"""PRISMA under PyTorch's DataLoader: one line, on the loader that is there already.

    loader = prismaio.torch.accelerate(DataLoader(dataset, batch_size=64, shuffle=True))

The loader stays a DataLoader. Order, bytes and random numbers stay what they are without PRISMA.
"""

from prismaio.torch.entry import accelerate
from prismaio.torch.loader import AcceleratedLoader
from prismaio.torch.tensors import tensor

__all__ = ["AcceleratedLoader", "accelerate", "tensor"]
