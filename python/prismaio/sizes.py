"""Sizes in bytes as people write them: "2GiB", "512 MiB", "1.5GB", 1048576."""

from __future__ import annotations

__all__ = ["GIB", "KIB", "MIB", "TIB", "format_size", "parse_size"]

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_BINARY_UNITS = {"TiB": TIB, "GiB": GIB, "MiB": MIB, "KiB": KIB}
_UNITS = {
    **{name.lower(): unit for name, unit in _BINARY_UNITS.items()},
    "tb": 10**12,
    "gb": 10**9,
    "mb": 10**6,
    "kb": 10**3,
    "b": 1,
    "": 1,
}
_AMBIGUOUS = frozenset("kmgt")  # 2G is 2GB to some tools and 2GiB to others
_EXAMPLES = 'write "512MiB", "2GiB", "1.5GB" or a whole number of bytes'


def parse_size(text: str) -> int:
    """Bytes that a size means; letter case and the space before the unit do not matter.

    Raises:
        ValueError: If `text` is not a size; the message quotes it and shows how to write one.
    """
    written = text.strip()
    number = written.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit_name = written[len(number) :].lower()
    if unit_name in _AMBIGUOUS:
        amount, letter = number.strip(), unit_name.upper()
        choice = f"{amount}{letter}iB or {amount}{letter}B"
        raise ValueError(f'"{text}" could mean two sizes: write {choice}')
    whole, point, fraction = number.strip().partition(".")
    if unit_name not in _UNITS or not _are_digits(whole) or bool(point) != _are_digits(fraction):
        raise ValueError(f'"{text}" is not a size: {_EXAMPLES}')
    unit = _UNITS[unit_name]
    if point and unit == 1:
        raise ValueError(f'"{text}" is not a whole number of bytes: {_EXAMPLES}')
    # In integers, since 1.1GB is not a binary fraction.
    scaled: int = int(whole + fraction) * unit // 10 ** len(fraction)
    return scaled


def format_size(size_bytes: int) -> str:
    """The shortest exact form if one decimal suffices ("2 GiB", "1.5 MiB"), else about so much.

    A size that is not a multiple of a tenth of its unit is marked: "about 23.5 GiB".
    """
    for name, unit in _BINARY_UNITS.items():
        if size_bytes >= unit:
            tenths, rest = divmod(size_bytes * 10 + unit // 2, unit)
            exact = rest == unit // 2
            amount = f"{tenths // 10}.{tenths % 10}".removesuffix(".0")
            return f"{'' if exact else 'about '}{amount} {name}"
    return f"{size_bytes} B"


def _are_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
