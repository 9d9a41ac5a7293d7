"""Sizes as people write them."""

from __future__ import annotations

import re

import pytest
from prismaio.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2GiB", 2 << 30),
        ("512 MiB", 512 << 20),
        ("1.5gb", 1_500_000_000),
        ("4096", 4096),
        ("0", 0),
        ("7B", 7),
        (" 1 KB ", 1000),
        ("0.5TiB", 1 << 39),
        ("1.1GB", 1_100_000_000),  # no binary fraction, and yet exact
        ("9007199254740993", 9007199254740993),  # more than a float holds
    ],
)
def test_a_size_is_read_as_written(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "much",
        "",
        "-1MiB",
        "1.5",
        "1e3",
        "GiB",
        "1,5GiB",
        "1.GiB",
        ".5GiB",
        "1.2.3MiB",
        "2PiB",
        "²B",
    ],
)
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{text}"')):
        parse_size(text)


def test_a_size_that_means_two_things_is_refused_with_both() -> None:
    with pytest.raises(ValueError, match=r'"2G" could mean two sizes: write 2GiB or 2GB'):
        parse_size("2G")


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1536, "1.5 KiB"),
        (2 << 30, "2 GiB"),
        (5 << 40, "5 TiB"),
        (1_500_000_000, "about 1.4 GiB"),
        ((1 << 20) + 1, "about 1 MiB"),
    ],
)
def test_a_size_is_shown_short_and_says_when_it_is_rounded(size_bytes: int, expected: str) -> None:
    assert format_size(size_bytes) == expected
