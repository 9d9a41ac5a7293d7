"""`prismaio demo`: a model trained from slow storage, plainly and through PRISMA."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Your own images, one folder per class, instead of made ones.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="DataLoader workers, in both runs.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Images per step.")] = 64,
    delay_ms: Annotated[
        float, typer.Option(min=0, help="What each open of a file takes; 0: a cold disk.")
    ] = 5.0,
    memory: Annotated[str, typer.Option(help="PRISMA's buffer.")] = "64MiB",
    seed: Annotated[int, typer.Option(help="Of weights, order and augmentation.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of the images.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where made images are kept; by default in your cache.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw the waiting time; by default beside them.")
    ] = None,
) -> None:
    """Train LeNet on photographs from slow storage, plainly and through PRISMA.

    Makes 4,096 JPEGs of about 110 KB from photographs that come with scikit-image and scikit-learn
    (kept for the next time), shows them through a file system on which each open takes 5 ms, and
    trains LeNet on them twice with the same seed: with PyTorch's DataLoader alone, and with the
    same loader through PRISMA. Then it compares time, waiting and memory, and checks that both
    runs ended with the same weights, to the last bit. It takes two or three minutes.

    Where that file system cannot be mounted (it takes FUSE), the images are read from the disk with
    a cold cache. The exit status is 1 if the weights differ.
    """
    from rich.console import Console

    from prismaio.demo.show import Options, show

    options = Options(
        data=data,
        folder=folder,
        workers=workers,
        batch=batch,
        epochs=epochs,
        delay_ms=delay_ms,
        seed=seed,
        memory=memory,
        quick=quick,
        picture=picture,
    )
    if not show(options, Console()):
        raise typer.Exit(1)
