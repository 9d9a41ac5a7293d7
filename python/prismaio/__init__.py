"""PRISMA reads training data ahead, in the order in which training will read it."""

from prismaio._core import Sample
from prismaio.connect import Prisma, connect
from prismaio.errors import PrismaError, SettingError

__version__ = "0.1.0"

__all__ = ["Prisma", "PrismaError", "Sample", "SettingError", "__version__", "connect"]
