"""PRISMA reads training data ahead, in the order in which training will read it."""

__version__ = "0.1.0"

__all__ = ["__version__"]
