"""accelerate(): from a DataLoader to one whose files are read ahead."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from torch.utils.data import DataLoader, IterableDataset

from prismaio import Prisma, connect
from prismaio.errors import SettingError
from prismaio.settings import resolve
from prismaio.torch.ahead import ReadAhead
from prismaio.torch.loader import AcceleratedLoader, accelerated
from prismaio.torch.paths import Paths, paths_of

__all__ = ["accelerate"]

_Batch = TypeVar("_Batch")


def accelerate(
    loader: DataLoader[_Batch],
    *,
    paths: Paths | None = None,
    prisma: Prisma | None = None,
    **settings: Any,
) -> AcceleratedLoader[_Batch]:
    """A loader that gives the same batches, and whose files PRISMA reads ahead.

    Args:
        loader: Any DataLoader over a map-style data set. It is left as it is, and both share the
            data set and the sampler.
        paths: The files that belong to an index: a path, or several in the order in which they
            are opened. Not needed for data sets that list them as torchvision's do.
        prisma: What to read through. By default all loaders of this program share one.
        **settings: For that one, as `prismaio.connect()` takes them.

    Raises:
        TypeError: If this is no such loader, or nobody knows which files belong to an index.
        SettingError: If a setting is impossible, or not that of the loaders that share it.
    """
    if not isinstance(loader, DataLoader):
        raise TypeError(f"accelerate() takes a DataLoader, not {type(loader).__name__}")
    if isinstance(loader.dataset, IterableDataset):
        raise TypeError(
            f"{type(loader.dataset).__name__} is an IterableDataset: nobody knows beforehand which "
            "files it reads. Read them through prismaio.connect().iterate(paths) inside it"
        )
    found = paths or paths_of(loader.dataset)
    if found is None:
        raise TypeError(
            f"which files belong to an index of {type(loader.dataset).__name__} is not known: say "
            "it with paths=, a function from an index to a path or a list of paths"
        )
    if prisma is not None and settings:
        raise SettingError(f"{', '.join(settings)}: give settings to connect(), or no prisma=")
    return accelerated(loader, ReadAhead(prisma or _shared.get(settings), found))


class _Shared:
    """The Prisma of all loaders that were given none; it ends with the last of them."""

    def __init__(self) -> None:
        self._prisma: weakref.ref[Prisma] | None = None
        self._settings: dict[str, Any] = {}

    def get(self, settings: dict[str, Any]) -> Prisma:
        prisma = None if self._prisma is None else self._prisma()
        resolve(**settings)  # a name that connect() does not know is a mistake like any other
        if prisma is None:
            prisma = connect(**settings)
            self._prisma, self._settings = weakref.ref(prisma), settings
        elif settings and settings != self._settings:
            raise SettingError(
                f"{', '.join(settings)}: this program's loaders share a Prisma that was made with "
                f"{self._settings or 'no settings'}; for others, give prisma=prismaio.connect(...)"
            )
        return prisma


_shared = _Shared()
