"""Slow, failing and cold storage: what PRISMA is tested and measured with, for users too."""

from prismaio.testing.cold import drop_caches, drop_from_cache, residency
from prismaio.testing.slow_storage import Fault, Slowness, SlowStorage
from prismaio.testing.throttle import BlkioThrottle

__all__ = [
    "BlkioThrottle",
    "Fault",
    "SlowStorage",
    "Slowness",
    "drop_caches",
    "drop_from_cache",
    "residency",
]
