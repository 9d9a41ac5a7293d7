"""PRISMA reads training data ahead, in the order in which training will read it."""

from prismaio.connect import Prisma, connect

__version__ = "0.1.0"

__all__ = ["Prisma", "__version__", "connect"]
