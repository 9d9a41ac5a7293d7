"""Sizes as people write them."""

from __future__ import annotations

import pytest
from prismaio.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2GiB", 2 << 30), ("512 MiB", 512 << 20), ("1.5gb", 1_500_000_000), ("4096", 4096)],
)
def test_a_size_is_read_as_written(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["much", "", "-1MiB", "2G", "1.5", "1e3", "GiB"])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=f'"{text}"'):
        parse_size(text)


def test_sizes_are_shown_short() -> None:
    assert [format_size(size) for size in (512, 1536, 2 << 30)] == ["512 B", "1.5 KiB", "2 GiB"]
