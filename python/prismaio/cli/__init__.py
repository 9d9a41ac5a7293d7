"""The command line. A file here is a command: the function of its own name, run by that name.

Only the file of the command that is asked for is imported; all of them, where help or a mistake
needs the whole list. So what is heavy (a framework, a plot) is imported inside the function.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from prismaio.errors import PrismaError

__all__ = ["commands", "main", "make_app"]

_ABOUT = """PRISMA reads training data ahead, in the order in which training will read it.

Every command explains itself: prismaio COMMAND --help.
"""


def main() -> None:
    """Runs the command that this process was started with."""
    try:
        make_app(sys.argv[1:])(prog_name="prismaio")
    except PrismaError as error:
        print(f"prismaio: {error}", file=sys.stderr)
        sys.exit(2)


def commands() -> list[str]:
    """The names of all commands."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def make_app(words: Sequence[str] = ()) -> typer.Typer:
    """The program for this command line: with the one command that it names, else with all."""
    everything = commands()
    named = next((word for word in words if not word.startswith("-")), None)
    app = typer.Typer(
        help=_ABOUT,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        # Frames and colours are for people; a pipe gets plain text.
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
    )
    app.callback()(_options)
    for name in [named] if named in everything else everything:
        module = import_module(f"{__name__}.{name}")
        app.command(name)(getattr(module, name))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from prismaio import __version__

        typer.echo(f"prismaio {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Takes the options that stand before a command."""
