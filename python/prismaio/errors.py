"""PRISMA's own errors. A failed read is none of them: it raises the OSError that open() would.

PrismaError
├── SettingError     (ValueError)       a setting PRISMA cannot work with
└── EngineLostError  (ConnectionError)  only for programs that insist on a node's engine and lost it
"""

from __future__ import annotations

__all__ = ["EngineLostError", "PrismaError", "SettingError"]


class PrismaError(Exception):
    """Something PRISMA itself could not do; the message says what, why and what to do about it."""


class SettingError(PrismaError, ValueError):
    """A setting that PRISMA cannot work with; names it, its value, its origin and the way out."""


class EngineLostError(PrismaError, ConnectionError):
    """The node's engine that this program insists on is gone."""
