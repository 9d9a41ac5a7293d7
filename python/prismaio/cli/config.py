"""`prismaio config`: the settings in force here, and where each comes from."""

from __future__ import annotations

import json
import sys
from typing import Annotated, NamedTuple

import typer

from prismaio.settings import SETTINGS, Setting, Settings, resolve
from prismaio.sizes import format_size


class _Row(NamedTuple):
    setting: str
    value: str
    origin: str
    variable: str
    meaning: str


def config(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, sizes in bytes.")] = False,
) -> None:
    """Print each setting with its value and where that comes from.

    An argument of connect() comes before a PRISMAIO_* variable, which comes before the default.
    What is printed holds for a program that is started here and gives no argument.
    """
    settings = resolve()
    if as_json:
        print(json.dumps(_as_data(settings), indent=2))
    elif sys.stdout.isatty():
        _print_table(_rows(settings))
    else:
        _print_plain(_rows(settings))


def _as_data(settings: Settings) -> dict[str, dict[str, object]]:
    return {
        setting.name: {
            "value": getattr(settings, setting.field),
            "origin": settings.origins[setting.name],
            "variable": setting.variable,
        }
        for setting in SETTINGS
    }


def _rows(settings: Settings) -> list[_Row]:
    return [
        _Row(
            setting.name,
            _shown(setting, getattr(settings, setting.field)),
            settings.origins[setting.name],
            setting.variable,
            setting.meaning,
        )
        for setting in SETTINGS
    ]


def _shown(setting: Setting, value: object) -> str:
    if setting.field.endswith("_bytes") and isinstance(value, int):
        return format_size(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _print_table(rows: list[_Row]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in _Row._fields:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as text: a path may look like markup
    Console().print(table)


def _print_plain(rows: list[_Row]) -> None:
    lines = [_Row._fields, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())
