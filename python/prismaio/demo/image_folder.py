"""The demo's data set: a folder of JPEGs in one folder per class, made once and kept."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from prismaio.demo.photographs import crops, photographs

__all__ = ["MEAN_BYTES", "cache_folder", "find_images", "made_images"]

MEAN_BYTES = 110_000  # about that of ImageNet
_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp"}
_PER_TASK = 64
_SEED = 1
_MARK = ".made-by-prismaio.json"  # written last: a folder without it is not whole


def cache_folder() -> Path:
    """Where the demo keeps what it made: the user's cache, or a place of its own in /tmp."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prismaio"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            return cache
    except OSError:
        temporary = Path(tempfile.gettempdir()) / f"prismaio-{os.geteuid()}"
        temporary.mkdir(mode=0o700, exist_ok=True)
        if temporary.stat().st_uid != os.geteuid():
            raise
        return temporary


def made_images(
    folder: Path, count: int, *, mean_bytes: int = MEAN_BYTES, progress: Callable[[int], None]
) -> Path:
    """The folder with so many made images, made now if it is not there yet.

    Args:
        folder: Where the data set lies or will lie.
        count: How many images, the same number of each photograph as far as possible.
        mean_bytes: The mean size of a file.
        progress: Is told how many more images there are.

    Raises:
        PrismaError: If the packages with the photographs are not installed.
        OSError: If the folder cannot be written.
    """
    recipe = {"count": count, "mean_bytes": mean_bytes, "seed": _SEED, "version": 1}
    if _recipe_of(folder) == recipe:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        _make(building, count, mean_bytes, progress)
        (building / _MARK).write_text(json.dumps(recipe))
        if folder.exists():
            if _recipe_of(folder) is None and any(folder.iterdir()):
                raise FileExistsError(f"{folder} holds something else: choose another folder")
            shutil.rmtree(folder)
        building.rename(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return folder


def find_images(folder: Path) -> tuple[list[tuple[str, int]], list[str]]:
    """All images below a folder as (path, class), and the classes: its immediate subfolders.

    A folder without subfolders is one class.
    """
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    names = [path.relative_to(folder).parts for path in paths]
    classes = sorted({parts[0] if len(parts) > 1 else "" for parts in names})
    number = {name: index for index, name in enumerate(classes)}
    samples = [
        (str(path), number[parts[0] if len(parts) > 1 else ""])
        for path, parts in zip(paths, names, strict=True)
    ]
    return samples, classes


def _recipe_of(folder: Path) -> object:
    try:
        return json.loads((folder / _MARK).read_text())
    except (OSError, ValueError):
        return None


def _make(folder: Path, count: int, mean_bytes: int, progress: Callable[[int], None]) -> None:
    pictures = sorted(photographs().items())
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        tasks = []
        for index, (name, path) in enumerate(pictures):
            (folder / name).mkdir()
            share = count // len(pictures) + (index < count % len(pictures))
            for first in range(0, share, _PER_TASK):
                many = min(_PER_TASK, share - first)
                tasks.append(pool.submit(_write, path, folder / name, first, many, mean_bytes))
        try:
            for task in as_completed(tasks):
                progress(task.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _write(picture: Path, folder: Path, first: int, count: int, mean_bytes: int) -> int:
    seed = f"{_SEED}/{picture.stem}/{first}"
    for number, content in enumerate(crops(picture, count, mean_bytes, seed), first):
        (folder / f"{number:05}.jpg").write_bytes(content)
    return count
