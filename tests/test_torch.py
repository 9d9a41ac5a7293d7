"""Accelerated loaders: the same batches and random numbers as without PRISMA, read ahead."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import prismaio
import pytest
import torch
from prismaio.errors import SettingError
from prismaio.files import SampleFile
from prismaio.torch import AcceleratedLoader, accelerate
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    Subset,
    WeightedRandomSampler,
)

FILES = 90
Loader = DataLoader[Any]


class Read(NamedTuple):
    """What a data set of these tests gives for an index."""

    number: int
    digest: str
    drawn: tuple[float, float, float]
    served: bool


class Files(Dataset[Read]):
    """Reads a file for each index, and draws from every generator that there is."""

    def __init__(self, folder: Path) -> None:
        self.samples = [(str(path), 0) for path in sorted(folder.iterdir())]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Read:
        with open(self.samples[index][0], "rb") as file:  # noqa: PTH123
            content = file.read()
            served = isinstance(file, SampleFile)
        drawn = (random.random(), float(np.random.rand()), float(torch.rand(())))
        return Read(int(index), hashlib.sha256(content).hexdigest(), drawn, served)


class Unlisted(Dataset[Read]):
    """The same, and does not say which file belongs to which index."""

    def __init__(self, folder: Path) -> None:
        self._inner = Files(folder)

    def __len__(self) -> int:
        return len(self._inner)

    def __getitem__(self, index: int) -> Read:
        return self._inner[index]

    def path(self, index: int) -> str:
        return self._inner.samples[index][0]


def as_they_are(batch: list[Any]) -> list[Any]:
    return batch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    sizes = random.Random(0)
    for number in range(FILES):
        size = 0 if number == 7 else sizes.randrange(60_000)
        (folder / f"{number:03}.bin").write_bytes(sizes.randbytes(size))
    return folder


@pytest.fixture
def dataset(folder: Path) -> Files:
    return Files(folder)


def loader_of(dataset: Dataset[Any], **options: Any) -> Loader:
    given: dict[str, Any] = {"batch_size": 7, "shuffle": True, "collate_fn": as_they_are}
    return DataLoader(dataset, **(given | options))


def states() -> list[bytes]:
    """Of the generators that plain training draws from."""
    return [
        pickle.dumps(random.getstate()),
        pickle.dumps(np.random.get_state()),
        pickle.dumps(torch.get_rng_state().tolist()),
    ]


def seed_all() -> None:
    random.seed(3)
    np.random.seed(4)
    torch.manual_seed(5)


def epochs(loader: Loader, count: int = 3) -> tuple[list[Any], list[bool]]:
    """Everything that training could notice in some epochs; and which files were served."""
    seed_all()
    noticed: list[Any] = []
    served: list[bool] = []
    for _ in range(count):
        for batch in loader:
            noticed += [read[:3] for read in batch]
            served += [read.served for read in batch]
            random.random()  # training draws too
            torch.rand(3)
        noticed += states()
    return noticed, served


def share(served: list[bool]) -> float:
    return sum(served) / len(served)


def assert_same_and_read_ahead(make: Callable[[], Loader], **how: Any) -> None:
    plain, none_served = epochs(make())
    loader = accelerate(make(), **how)
    got, served = epochs(loader)
    assert got == plain
    assert not any(none_served)
    assert share(served) == 1.0
    assert loader.mispredicted_epochs == 0


@pytest.mark.parametrize("workers", [0, 1, 2, 4, 8])
def test_forked_workers_get_the_same_batches_from_the_buffer(dataset: Files, workers: int) -> None:
    assert_same_and_read_ahead(lambda: loader_of(dataset, num_workers=workers))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_of_other_start_methods_do_too(dataset: Files, start: str) -> None:
    assert_same_and_read_ahead(
        lambda: loader_of(
            dataset, num_workers=2, multiprocessing_context=start, persistent_workers=True
        )
    )


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": False},
        {"drop_last": True},
        {"batch_size": None, "collate_fn": None},
        {"persistent_workers": True, "num_workers": 2},
        {"prefetch_factor": 5, "num_workers": 3},
        {"in_order": False, "num_workers": 1},
    ],
    ids=lambda options: ",".join(options),
)
def test_whatever_the_loader_is_told(dataset: Files, options: dict[str, Any]) -> None:
    if options.get("batch_size", 7) is None:

        def make() -> Loader:
            return DataLoader(dataset, batch_size=None, shuffle=True, collate_fn=one_by_one)

    else:

        def make() -> Loader:
            return loader_of(dataset, **options)

    assert_same_and_read_ahead(make)


def one_by_one(read: Any) -> list[Any]:
    return [read]


class Drawing(Sampler[int]):
    """Draws from the global generators at each step, and from one of its own."""

    def __init__(self, data_source: Files) -> None:
        self.data_source = data_source
        self._own = np.random.default_rng(1)

    def __len__(self) -> int:
        return len(self.data_source)

    def __iter__(self) -> Iterator[int]:
        for _ in range(len(self)):
            yield int(self._own.integers(len(self)))


class Eager(Drawing):
    """Draws everything when it is asked for an iterator, and keeps count of epochs."""

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.data_source)))
        random.shuffle(order)
        torch.rand(2)
        return iter(order)


class Sure(Eager):
    """Knows whether it was copied."""

    copied = False

    def __deepcopy__(self, memo: object) -> Sure:
        Sure.copied = True
        return self


SAMPLERS: dict[str, Callable[[Files], dict[str, Any]]] = {
    "a generator of its own": lambda files: {"generator": torch.Generator().manual_seed(7)},
    "replacement": lambda files: {"sampler": RandomSampler(files, replacement=True)},
    "weights": lambda files: {"sampler": WeightedRandomSampler(list(range(len(files))), 50)},
    "a numpy generator": lambda files: {"sampler": Drawing(files)},
    "drawn all at once": lambda files: {"sampler": Eager(files)},
    "a batch sampler": lambda files: {
        "batch_sampler": BatchSampler(RandomSampler(files), 5, drop_last=True)
    },
    "a list of batches": lambda files: {"batch_sampler": [[0, 5], [3], [80, 2, 2]]},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_are_run_ahead_of_without_a_trace(dataset: Files, name: str, workers: int) -> None:
    def make() -> Loader:
        seed_all()
        options = SAMPLERS[name](dataset)
        if "batch_sampler" in options:
            return DataLoader(dataset, num_workers=workers, collate_fn=as_they_are, **options)
        shuffle = "sampler" not in options
        return loader_of(dataset, num_workers=workers, shuffle=shuffle, **options)

    assert_same_and_read_ahead(make)


def test_a_generator_of_the_users_is_left_as_plain_training_leaves_it(dataset: Files) -> None:
    def left(wrap: Callable[[Loader], Loader]) -> bytes:
        generator = torch.Generator().manual_seed(11)
        epochs(wrap(loader_of(dataset, generator=generator, num_workers=2)))
        return bytes(generator.get_state().tolist())

    assert left(accelerate) == left(lambda loader: loader)


class Moody(Sampler[int]):
    """Asks the operating system for its order, so that no copy of it can know."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        yield from range(10)
        rest = list(range(10, self._size))
        random.Random(os.urandom(8)).shuffle(rest)
        yield from rest


def test_a_sampler_that_is_not_foreseen_is_followed_and_named_once(dataset: Files) -> None:
    loader = accelerate(loader_of(dataset, shuffle=False, sampler=Moody(FILES)))
    with pytest.warns(RuntimeWarning, match="BatchSampler of Moody: ") as told:
        read = [one for _ in range(2) for batch in loader for one in batch]
    assert len([one for one in told if "PRISMA" in str(one.message)]) == 1
    assert sorted(one.number for one in read[:FILES]) == list(range(FILES))
    contents = [Path(path).read_bytes() for path, _ in dataset.samples]
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    assert all(one.digest == digests[one.number] for one in read)
    assert [one.served for one in read[:7]] == [True] * 7
    assert not any(one.served for one in read[14:FILES])
    assert loader.mispredicted_epochs == 2


def test_batches_that_can_be_looked_at_only_once_are_left_alone(dataset: Files) -> None:
    class Once(Sampler[Any]):
        def __iter__(self) -> Iterator[Any]:
            return (iter(range(first, first + 5)) for first in range(0, 50, 5))

    loader: Loader = DataLoader(dataset, batch_sampler=Once(), collate_fn=as_they_are)
    with pytest.warns(RuntimeWarning, match="Once: its batches"):
        read = [one.number for batch in accelerate(loader) for one in batch]
    assert read == list(range(50))


def test_a_sampler_that_fails_half_way_does_so_at_its_place(dataset: Files) -> None:
    class Failing(Drawing):
        def __iter__(self) -> Iterator[int]:
            yield from range(30)
            raise KeyError("half-way")

    read: list[Read] = []
    loader = accelerate(loader_of(dataset, shuffle=False, sampler=Failing(dataset)))
    with pytest.raises(KeyError, match="half-way"):
        read.extend(one for batch in loader for one in batch)
    assert [one.number for one in read] == list(range(28))
    assert all(one.served for one in read)
    assert loader.mispredicted_epochs == 0


def test_a_copy_that_fails_is_named_and_the_sampler_followed(dataset: Files) -> None:
    class Original(Drawing):
        def __deepcopy__(self, memo: object) -> Original:
            copied = Original(self.data_source)
            copied.is_copy = True
            return copied

        is_copy = False

        def __iter__(self) -> Iterator[int]:
            yield from range(14)
            if self.is_copy:
                raise KeyError("only here")
            yield from range(14, 30)

    loader = accelerate(loader_of(dataset, shuffle=False, sampler=Original(dataset)))
    with pytest.warns(RuntimeWarning, match=r"running ahead of it failed.*only here"):
        read = [one for batch in loader for one in batch]
    assert [one.number for one in read] == list(range(30))
    assert [one.served for one in read] == [True] * 14 + [False] * 16


def test_a_sampler_that_cannot_be_copied_is_read_plainly(dataset: Files) -> None:
    class Stubborn(Eager):
        def __deepcopy__(self, memo: object) -> Stubborn:
            raise TypeError("no copies of me")

    with pytest.warns(RuntimeWarning, match=r"BatchSampler of Stubborn .*no copies of me"):
        _, served = epochs(accelerate(loader_of(dataset, shuffle=False, sampler=Stubborn(dataset))))
    assert not any(served)


def test_the_data_set_is_never_copied(folder: Path) -> None:
    class Heavy(Files):
        def __deepcopy__(self, memo: object) -> Heavy:
            raise AssertionError("copied")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, served = epochs(accelerate(loader_of(Subset(Heavy(folder), range(40)))))
    assert share(served) == 1.0


def test_it_stays_a_data_loader(dataset: Files) -> None:
    class Special(DataLoader[Any]):
        extra = "kept"

    plain = Special(dataset, batch_size=7, shuffle=True, num_workers=2, collate_fn=as_they_are)
    loader = accelerate(plain)
    assert isinstance(loader, DataLoader)
    assert isinstance(loader, Special)
    assert isinstance(loader, AcceleratedLoader)
    assert len(loader) == len(plain)
    for name in ("batch_size", "dataset", "sampler", "batch_sampler", "drop_last", "extra"):
        assert getattr(loader, name) is getattr(plain, name)
    assert loader.worker_init_fn is None
    assert type(plain) is Special


def test_it_can_be_pickled(dataset: Files) -> None:
    loader = pickle.loads(pickle.dumps(accelerate(loader_of(dataset))))
    assert isinstance(loader, AcceleratedLoader)
    assert epochs(loader)[0] == epochs(loader_of(dataset))[0]


def test_paths_may_be_told(folder: Path) -> None:
    unlisted = Unlisted(folder)
    assert_same_and_read_ahead(lambda: loader_of(unlisted), paths=unlisted.path)


def test_a_function_of_paths_may_draw_random_numbers(folder: Path) -> None:
    unlisted = Unlisted(folder)

    def paths(index: int) -> list[str]:
        random.random()
        torch.rand(1)
        return [unlisted.path(index)]

    assert_same_and_read_ahead(lambda: loader_of(unlisted), paths=paths)


def test_wrong_paths_cost_time_and_nothing_else(folder: Path, dataset: Files) -> None:
    def next_one(index: int) -> str:
        return str(folder / f"absent-{index}")

    plain, _ = epochs(loader_of(dataset, num_workers=2))
    got, served = epochs(accelerate(loader_of(dataset, num_workers=2), paths=next_one))
    assert got == plain
    assert not any(served)


def test_what_cannot_be_accelerated_is_refused_by_name(folder: Path) -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(())

    with pytest.raises(TypeError, match=r"Unlisted.*paths="):
        accelerate(loader_of(Unlisted(folder)))
    with pytest.raises(TypeError, match="Stream is an IterableDataset"):
        accelerate(DataLoader(Stream()))
    with pytest.raises(TypeError, match="not list"):
        accelerate([1, 2])  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="memroy"):
        accelerate(loader_of(Files(folder)), memroy="1GiB")


def test_loaders_share_one_prisma(dataset: Files) -> None:
    first = accelerate(loader_of(dataset), memory="64MiB")
    assert accelerate(loader_of(dataset)).prisma is first.prisma
    with pytest.raises(SettingError, match="share"):
        accelerate(loader_of(dataset), memory="128MiB")
    with prismaio.connect(memory="32MiB") as prisma:
        assert accelerate(loader_of(dataset), prisma=prisma).prisma is prisma


@pytest.mark.parametrize("workers", [0, 2])
def test_training_and_validation_side_by_side(dataset: Files, workers: int) -> None:
    def both(wrap: Callable[[Loader], Loader]) -> list[Any]:
        train = wrap(loader_of(Subset(dataset, range(60)), num_workers=workers))
        check = wrap(loader_of(Subset(dataset, range(60, FILES)), shuffle=False))
        return [epochs(loader, 1)[0] for _ in range(2) for loader in (train, check)]

    assert both(accelerate) == both(lambda loader: loader)


def test_this_process_opens_files_as_ever_once_the_loader_has_run(dataset: Files) -> None:
    real = open
    loader = accelerate(loader_of(dataset, num_workers=0))
    running = iter(loader)
    next(running)
    assert open is real
    path = dataset.samples[0][0]
    with open(path, "rb") as file:  # noqa: PTH123
        assert not isinstance(file, SampleFile)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_off_epoch_is_cancelled_and_the_next_one_whole(
    dataset: Files, workers: int
) -> None:
    def broken_off(wrap: Callable[[Loader], Loader]) -> list[Any]:
        seed_all()
        loader = wrap(loader_of(dataset, num_workers=workers, persistent_workers=workers > 0))
        for _ in loader:
            break
        return epochs(loader, 2)[0]

    assert broken_off(accelerate) == broken_off(lambda loader: loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_memory_comes_back_when_an_epoch_is_broken_off(dataset: Files, workers: int) -> None:
    with prismaio.connect(memory="16MiB") as prisma:
        loader = accelerate(loader_of(dataset, num_workers=workers), prisma=prisma)
        for _ in loader:
            break
        deadline = time.monotonic() + 20
        while (stats := prisma.stats())["used_bytes"] + stats["reads_in_flight"] > 0:
            assert time.monotonic() < deadline, stats
            time.sleep(0.01)


def test_an_error_of_the_data_set_is_the_users_to_see(dataset: Files, folder: Path) -> None:
    dataset.samples[20] = (str(folder / "absent"), 0)
    loader = accelerate(loader_of(dataset, shuffle=False))
    read: list[Read] = []
    with pytest.raises(FileNotFoundError) as failure:
        read.extend(one for batch in loader for one in batch)
    assert failure.value.filename == str(folder / "absent")
    assert len(read) == 14


def test_a_killed_engine_costs_only_time(dataset: Files) -> None:
    plain, _ = epochs(loader_of(dataset, num_workers=2), 1)
    with prismaio.connect(memory="16MiB", lookahead=16) as prisma:
        loader = accelerate(loader_of(dataset, num_workers=2), prisma=prisma)
        seed_all()
        got: list[Any] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, batch in enumerate(loader):
                got += [read[:3] for read in batch]
                random.random()
                torch.rand(3)
                if number == 2:
                    os.kill(prisma.stats()["engine_pid"], signal.SIGKILL)
        assert got == plain[: len(got)]
        assert len(got) == FILES


def test_a_buffer_smaller_than_a_batch_feeds_all_workers(dataset: Files) -> None:
    def make() -> Loader:
        return loader_of(dataset, batch_size=40, num_workers=2)

    plain, _ = epochs(make())
    with prismaio.connect(memory="1MiB") as prisma:
        got, served = epochs(accelerate(make(), prisma=prisma))
    assert got == plain
    assert share(served) == 1.0


def test_switched_off_it_is_the_plain_loader(
    dataset: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRISMAIO_DISABLE", "1")
    with prismaio.connect() as prisma:
        got, served = epochs(accelerate(loader_of(dataset, num_workers=2), prisma=prisma))
        Sure.copied = False
        list(accelerate(loader_of(dataset, shuffle=False, sampler=Sure(dataset)), prisma=prisma))
    assert got == epochs(loader_of(dataset, num_workers=2))[0]
    assert not any(served)
    assert not Sure.copied
