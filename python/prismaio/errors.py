"""PRISMA's own errors. A failed read is none of them: it raises the OSError that open() would.

PrismaError
└── SettingError     (ValueError)       a setting PRISMA cannot work with
"""

from __future__ import annotations

__all__ = ["PrismaError", "SettingError"]


class PrismaError(Exception):
    """Something PRISMA itself could not do; the message says what, why and what to do about it."""


class SettingError(PrismaError, ValueError):
    """A setting that PRISMA cannot work with; names it, its value, and the way out."""
