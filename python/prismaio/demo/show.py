"""The demo from start to end: pictures, storage, both runs, and what they amount to."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from prismaio.demo.image_folder import cache_folder, find_images, made_images
from prismaio.demo.report import draw, following, table
from prismaio.demo.runs import Run, Task, run
from prismaio.demo.storage import Storage, storage_of
from prismaio.errors import PrismaError

__all__ = ["Options", "show"]

IMAGES, QUICK_IMAGES = 4096, 1024
_NEEDED = {"torch": "torch", "PIL": "pillow"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the demo's command line says."""

    data: Path | None = None
    folder: Path | None = None
    workers: int = 2
    batch: int = 64
    epochs: int = 1
    delay_ms: float = 5.0
    seed: int = 1
    memory: str = "64MiB"
    quick: bool = False
    picture: Path | None = None


def show(options: Options, console: Console) -> bool:
    """Runs the demo; returns whether both runs ended with the same weights.

    Raises:
        PrismaError: If something that it needs is missing, or training failed.
    """
    _check_installed()
    cache = options.folder or cache_folder()
    images = options.data or _our_images(cache, options.quick, console)
    if not find_images(images)[0]:
        raise PrismaError(f"no images below {images}: give a folder with JPEGs or PNGs")
    with storage_of(images, options.delay_ms) as storage:
        for line in (f"[bold]Storage[/]: {escape(storage.described)}", _about(options)):
            console.print(line, highlight=False, soft_wrap=True)
        runs = _both(options, storage, console)
        described = storage.described
    console.print(table(runs))
    _draw(runs, options.picture or cache / "demo.png", described, console)
    return _verdict(runs, console)


def _check_installed() -> None:
    missing = [package for name, package in _NEEDED.items() if find_spec(name) is None]
    if missing:
        raise PrismaError(
            f'the demo needs {" and ".join(missing)}: pip install "prismaio[demo]", or `make demo`'
        )


def _our_images(cache: Path, quick: bool, console: Console) -> Path:
    count = QUICK_IMAGES if quick else IMAGES
    folder = cache / f"photographs-{count}"
    made = 0
    with following(console, "making JPEGs") as update:

        def progress(more: int) -> None:
            nonlocal made
            made += more
            update(made, count, f"crops of photographs, kept in {folder}")

        return made_images(folder, count, progress=progress)


def _about(options: Options) -> str:
    return (
        f"[bold]Training[/]: LeNet on the CPU, {options.epochs} epoch(s), batches of "
        f"{options.batch}, {options.workers} DataLoader worker(s) in both runs, the same seed"
    )


def _both(options: Options, storage: Storage, console: Console) -> dict[str, Run]:
    runs: dict[str, Run] = {}
    for name, through_prisma in (("PyTorch", False), ("PyTorch + PRISMA", True)):
        with following(console, name) as update:

            def progress(seen: Run, update: object = update) -> None:
                note = f"loss {seen.loss:.3f}, waited {seen.wait_s:.1f} s"
                assert callable(update)
                update(len(seen.waits_s), seen.steps, note)

            runs[name] = run(_task(options, storage, through_prisma), storage, progress)
    return runs


def _task(options: Options, storage: Storage, through_prisma: bool) -> Task:
    return Task(
        folder=str(storage.path),
        through_prisma=through_prisma,
        workers=options.workers,
        batch=options.batch,
        epochs=options.epochs,
        seed=options.seed,
        memory=options.memory,
        limit=QUICK_IMAGES if options.quick else 0,
    )


def _draw(runs: dict[str, Run], path: Path, storage: str, console: Console) -> None:
    try:
        draw(runs, path, storage)
    except (ImportError, OSError) as error:
        console.print(f"No picture: {error}", highlight=False, markup=False)
    else:
        line = f"Picture of the waiting time: {path}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _verdict(runs: dict[str, Run], console: Console) -> bool:
    plain, prisma = runs.values()
    if plain.digest != prisma.digest:
        console.print("[bold red]The weights differ[/]: PRISMA changed what was trained")
        return False
    console.print(
        f"[bold]The same weights to the last bit[/], {plain.time_s / prisma.time_s:.1f} times as "
        f"fast, with {prisma.wait_s / plain.wait_s:.0%} of the waiting",
        highlight=False,
        soft_wrap=True,
    )
    return True
