"""prismaio.testing.cold: the page cache forgets what it is told to, and shows what it holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prismaio.testing import drop_caches, drop_from_cache, residency

SIZE = 1 << 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(SIZE))
    return path


def test_a_file_just_written_can_be_dropped_and_is_read_back_whole(file: Path) -> None:
    assert residency(file) == 1
    drop_from_cache([file])
    assert residency(file) == 0
    file.read_bytes()
    assert residency(file) == 1


def test_residency_is_the_share_that_was_read(file: Path) -> None:
    drop_from_cache([file])
    with file.open("rb", buffering=0) as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
        opened.read(SIZE // 4)
    assert residency(file) == 0.25


def test_a_folder_is_dropped_with_all_below_it_and_its_links_are_not_followed(
    file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder" / "deep"
    folder.mkdir(parents=True)
    inside = folder / os.fsdecode(b"\xff")
    inside.write_bytes(b"x" * SIZE)
    (folder / "link").symlink_to(file)
    (folder / "empty").touch()
    drop_from_cache([tmp_path / "folder"])
    assert residency(inside) == 0
    assert residency(file) == 1


def test_an_empty_file_counts_as_present_and_a_missing_one_raises(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert residency(tmp_path / "empty") == 1
    for action in (lambda: residency(tmp_path / "no"), lambda: drop_from_cache([tmp_path / "no"])):
        with pytest.raises(FileNotFoundError):
            action()


@pytest.mark.skipif(
    not os.access("/proc/sys/vm/drop_caches", os.W_OK), reason="only root may drop all caches"
)
def test_root_can_make_the_kernel_forget_everything(file: Path) -> None:
    drop_caches()
    assert residency(file) == 0
