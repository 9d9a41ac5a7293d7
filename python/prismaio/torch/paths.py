"""Which files belong to an index of a data set."""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.utils.data import ConcatDataset, StackDataset, Subset

__all__ = ["Path", "Paths", "as_list", "paths_of"]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Callable[[Any], Path | Iterable[Path]]  # of an index: what reading it opens, in order


def paths_of(dataset: Any) -> Paths | None:
    """A function from an index to the files that belong to it; None if that cannot be known.

    Knows data sets that list their files as torchvision's do (`samples`, `imgs`: paths, or tuples
    that begin with a path), and Subset, ConcatDataset and StackDataset of these.
    """
    if isinstance(dataset, Subset):
        inner = paths_of(dataset.dataset)
        return None if inner is None else _OfSubset(dataset, inner)
    if isinstance(dataset, ConcatDataset):
        parts = list(map(paths_of, dataset.datasets))
        known = [paths for paths in parts if paths is not None]
        return _OfConcatenation(dataset, known) if len(known) == len(parts) else None
    if isinstance(dataset, StackDataset):
        layers = dataset.datasets
        parts = list(map(paths_of, layers.values() if isinstance(layers, dict) else layers))
        known = [paths for paths in parts if paths is not None]
        return _OfStack(known) if known else None
    for name in ("samples", "imgs"):
        listed = getattr(dataset, name, None)
        if _lists_paths(listed):
            return _Listed(dataset, name)
    return None


def _lists_paths(listed: Any) -> bool:
    if not isinstance(listed, Sequence) or not listed or isinstance(listed, (str, bytes)):
        return False
    return isinstance(_first(listed[0]), (str, bytes, os.PathLike))


def _first(entry: Any) -> Any:
    return entry[0] if isinstance(entry, (tuple, list)) and entry else entry


class _Listed:
    """Looks into the data set each time: what it lists may be replaced between epochs."""

    def __init__(self, dataset: Any, name: str) -> None:
        self._dataset = dataset
        self._name = name

    def __call__(self, index: Any) -> Path:
        path: Path = _first(getattr(self._dataset, self._name)[index])
        return path


class _OfSubset:
    def __init__(self, subset: Subset[Any], inner: Paths) -> None:
        self._subset = subset
        self._inner = inner

    def __call__(self, index: Any) -> Path | Iterable[Path]:
        return self._inner(self._subset.indices[index])


class _OfConcatenation:
    def __init__(self, whole: ConcatDataset[Any], parts: list[Paths]) -> None:
        self._whole = whole
        self._parts = parts

    def __call__(self, index: Any) -> Path | Iterable[Path]:
        index = index + len(self._whole) if index < 0 else index
        number = bisect.bisect_right(self._whole.cumulative_sizes, index)
        before = self._whole.cumulative_sizes[number - 1] if number else 0
        return self._parts[number](index - before)


class _OfStack:
    def __init__(self, layers: list[Paths]) -> None:
        self._layers = layers

    def __call__(self, index: Any) -> list[Path]:
        return [path for paths in self._layers for path in as_list(paths(index))]


def as_list(paths: Path | Iterable[Path]) -> list[Path]:
    """One path or several, as a list."""
    return [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
