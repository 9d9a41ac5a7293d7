"""DataLoaders whose files PRISMA reads ahead."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from torch.utils.data import DataLoader

from prismaio import hooks
from prismaio.torch.ahead import AheadSampler, Epoch, ReadAhead

if TYPE_CHECKING:
    from prismaio import Prisma

__all__ = ["AcceleratedLoader", "accelerated"]

_Batch = TypeVar("_Batch", covariant=True)


class AcceleratedLoader(DataLoader[_Batch]):
    """A DataLoader, as it was made, whose files are read ahead. Made by `accelerate()`."""

    _ahead: ReadAhead

    @property
    def prisma(self) -> Prisma:
        """What it reads through: `loader.prisma.stats()` tells how well that goes."""
        return self._ahead.prisma

    @property
    def mispredicted_epochs(self) -> int:
        """Epochs in which the sampler could not be run ahead of, wholly or from some batch on."""
        return self._ahead.mispredicted

    def __iter__(self) -> Iterator[_Batch]:  # type: ignore[override]
        inner = super().__iter__()
        return Running(inner, None if self.num_workers else self.prisma)

    def _get_iterator(self) -> Any:
        inner = copy.copy(self)
        inner.__class__ = _kinds(_plain_class(self))[1]
        if self.num_workers:
            inner.worker_init_fn = _WorkerStart(self.prisma, self.worker_init_fn)
        return super(AcceleratedLoader, inner)._get_iterator()

    def __copy__(self) -> AcceleratedLoader[_Batch]:
        twin: AcceleratedLoader[_Batch] = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _iterator=None)
        return twin

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        plain: DataLoader[_Batch] = copy.copy(self)
        plain.__class__ = _plain_class(self)
        ahead = plain.__dict__.pop("_ahead")
        return accelerated, (plain, ahead)


class _Inner(AcceleratedLoader[Any]):
    """What the loader's iterator is given in its place: the same, with another sampler."""

    @property
    def _index_sampler(self) -> Any:
        sampler = super()._index_sampler
        return AheadSampler(
            sampler,
            self._ahead,
            lanes=max(1, self.num_workers) if getattr(self, "in_order", True) else 1,
            batched=self._auto_collation,
            shared=_data_sets(self.dataset, sampler),
        )


class Running(Iterator[Any]):
    """One iteration: the loader's own iterator, and the end of its plan however it ends."""

    def __init__(self, inner: Any, prisma: Prisma | None) -> None:
        """Begins nothing.

        Args:
            inner: The loader's own iterator.
            prisma: What this process itself takes files from, if it has no workers.
        """
        self._inner = inner
        self._prisma = prisma
        self._epoch: Epoch = inner._sampler_iter

    def __next__(self) -> Any:
        try:
            if self._prisma is None:
                return next(self._inner)
            with hooks.serving(self._prisma):
                return next(self._inner)
        except (StopIteration, KeyboardInterrupt, SystemExit):
            self._epoch.stop()
            raise

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in {"_inner", "_epoch"}:
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __del__(self) -> None:
        epoch = self.__dict__.get("_epoch")
        if epoch is not None:
            epoch.stop()


class _WorkerStart:
    """Runs in each worker before its first batch; then what the user wants to run there."""

    def __init__(self, prisma: Prisma, then: Callable[[int], None] | None) -> None:
        self._prisma = prisma
        self._then = then

    def __call__(self, worker: int) -> None:
        hooks.serve(self._prisma)
        if self._then is not None:
            self._then(worker)


def accelerated(loader: DataLoader[_Batch], ahead: ReadAhead) -> AcceleratedLoader[_Batch]:
    """A loader like this one, over the same data set and sampler, that reads ahead."""
    twin: AcceleratedLoader[_Batch] = object.__new__(_kinds(_plain_class(loader))[0])
    twin.__dict__.update(loader.__dict__, _iterator=None, _ahead=ahead)
    return twin


@cache
def _kinds(base: Any) -> tuple[type[Any], type[Any]]:
    """The classes of an accelerated loader, and of what its iterator is given, for a class."""
    if base is DataLoader:
        return AcceleratedLoader, _Inner
    outer = type(f"Accelerated{base.__name__}", (AcceleratedLoader, base), {"_plain": base})
    inner = type(f"_Inner{base.__name__}", (_Inner, outer), {})
    return outer, inner


def _plain_class(loader: DataLoader[Any]) -> Any:
    kind = type(loader)
    return getattr(kind, "_plain", DataLoader) if issubclass(kind, AcceleratedLoader) else kind


def _data_sets(dataset: Any, sampler: Any) -> Iterable[Any]:
    """Data sets, and what samplers along the chain call their source: large, and never copied."""
    waiting, seen = [dataset], []
    while waiting:
        one = waiting.pop()
        seen.append(one)
        several = getattr(one, "datasets", ())
        several = several.values() if isinstance(several, dict) else several
        inner = [getattr(one, "dataset", None)]
        inner += several if isinstance(several, Iterable) else ()
        waiting += [other for other in inner if not any(other is known for known in (None, *seen))]
    while sampler is not None:
        seen += [
            found
            for name in ("data_source", "dataset")
            if (found := getattr(sampler, name, None)) is not None
        ]
        sampler = getattr(sampler, "sampler", None) or getattr(sampler, "batch_sampler", None)
    return seen
