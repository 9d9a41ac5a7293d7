"""The demo: its pictures, both of its runs, and what it says about them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from prismaio import cli
from prismaio.demo import image_folder, photographs, show
from prismaio.demo.image_folder import find_images, made_images
from prismaio.demo.processes import Watch, family
from prismaio.demo.runs import Run
from prismaio.demo.storage import Reads
from prismaio.errors import PrismaError
from rich.console import Console
from typer.testing import CliRunner

PROGRAM = [sys.executable, "-c", "from prismaio.cli import main; main()", "demo"]


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two pictures in place of the photographs."""
    made = {}
    for number, mode in enumerate(("RGB", "L")):
        noise = np.random.default_rng(number).integers(0, 256, (30, 40, 3), dtype=np.uint8)
        path = tmp_path / f"picture-{mode}.png"
        Image.fromarray(noise).convert(mode).resize((600, 450)).save(path)
        made[path.stem] = path
    monkeypatch.setattr(image_folder, "photographs", lambda: made)
    return made


def digest_of(folder: Path) -> str:
    paths = sorted(path for path in folder.rglob("*.jpg"))
    whole = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
    return hashlib.sha256(whole).hexdigest()


def made_in(folder: Path, count: int, mean_bytes: int = 6000) -> list[int]:
    """Makes images; returns what was told of its progress."""
    told: list[int] = []
    made_images(folder, count, mean_bytes=mean_bytes, progress=told.append)
    return told


def test_as_many_images_as_wanted_are_made_and_always_the_same(
    pictures: dict[str, Path], tmp_path: Path
) -> None:
    assert sum(made_in(tmp_path / "one", 151)) == 151
    made_in(tmp_path / "two", 151)
    samples, classes = find_images(tmp_path / "one")
    assert len(samples) == 151
    assert classes == sorted(pictures)
    assert digest_of(tmp_path / "one") == digest_of(tmp_path / "two")


def test_made_images_are_kept_for_the_next_time(pictures: dict[str, Path], tmp_path: Path) -> None:
    made_in(tmp_path / "images", 10)
    assert made_in(tmp_path / "images", 10) == []
    assert sum(made_in(tmp_path / "images", 12)) == 12
    assert len(find_images(tmp_path / "images")[0]) == 12


def test_a_folder_of_somebody_elses_is_not_touched(
    pictures: dict[str, Path], tmp_path: Path
) -> None:
    theirs = tmp_path / "images" / "theirs.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine")
    with pytest.raises(FileExistsError, match="something else"):
        made_in(tmp_path / "images", 4)
    assert theirs.read_text() == "mine"
    assert [path.name for path in tmp_path.glob("images*")] == ["images"]


def test_an_interrupted_making_leaves_nothing(pictures: dict[str, Path], tmp_path: Path) -> None:
    def interrupt(more: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_images(tmp_path / "images", 4, progress=interrupt)
    assert list(tmp_path.glob("images*")) == []


def test_sizes_spread_around_their_mean(pictures: dict[str, Path]) -> None:
    for path in pictures.values():
        contents = list(photographs.crops(path, 150, 12_000, "seed"))
        sizes = [len(content) for content in contents]
        assert 10_000 < statistics.mean(sizes) < 14_000
        logarithms = np.log(sizes)
        assert 0.35 < logarithms.std() < 0.65
        shapes = {Image.open(io.BytesIO(content)).size for content in contents}
        assert len(shapes) > 100


@pytest.mark.skipif(
    find_spec("skimage") is None or find_spec("sklearn") is None,
    reason="scikit-image and scikit-learn bring the photographs, and are not installed",
)
def test_the_packages_bring_the_photographs() -> None:
    found = photographs.photographs()
    assert {"astronaut", "china"} <= set(found)
    for path in found.values():
        with Image.open(path) as picture:
            assert min(picture.size) >= 300


def test_images_are_found_in_class_folders_or_in_one(tmp_path: Path) -> None:
    for name in ("cat/1.jpg", "cat/deep/2.PNG", "dog/3.jpeg", "dog/notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    samples, classes = find_images(tmp_path)
    assert [(Path(path).name, classes[label]) for path, label in samples] == [
        ("1.jpg", "cat"),
        ("2.PNG", "cat"),
        ("3.jpeg", "dog"),
    ]
    assert [label for _, label in find_images(tmp_path / "dog")[0]] == [0]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("delay_ms", ["2", "0"])
def test_both_runs_train_the_same_model_and_are_compared(
    pictures: dict[str, Path], tmp_path: Path, delay_ms: str
) -> None:
    made_in(tmp_path / "images", 60)
    words = ["--data", str(tmp_path / "images"), "--batch", "8", "--delay-ms", delay_ms]
    words += ["--folder", str(tmp_path / "cache"), "--picture", str(tmp_path / "drawn.png")]
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    for said in ("waiting for data", "accelerator utilisation", "samples/s", "reads in flight"):
        assert said in done.stdout
    assert "The same weights to the last bit" in done.stdout
    if find_spec("matplotlib") is not None:
        with Image.open(tmp_path / "drawn.png") as drawn:
            assert drawn.size > (400, 300)


def test_a_run_is_watched_with_all_its_children() -> None:
    grandchild = "import time; held = bytearray(60 << 20); print(1, flush=True); time.sleep(60)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pids = family([process.pid])
        with Watch(process.pid) as watch:
            deadline = time.monotonic() + 20
            while watch.peak_bytes < 60 << 20:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    assert len(pids) == 2
    assert watch.peak_bytes < 200 << 20
    assert sum(watch.waiting.values()) > 0
    assert Reads.seen({0: 5, 4: 10, 16: 5}) == (6.0, 16)


def test_other_weights_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(digest: str) -> Run:
        return Run(steps=1, samples=8, waits_s=[0.5], compute_s=0.5, time_s=1.0, digest=digest)

    console = Console(record=True)
    monkeypatch.setattr(show, "run", lambda task, *_: ran(str(task.through_prisma)))
    with_images = show.Options(data=Path(__file__).parent, delay_ms=0)
    monkeypatch.setattr(show, "find_images", lambda folder: ([("a.jpg", 0)], [""]))
    assert show.show(with_images, console) is False
    assert "differ" in console.export_text()
    monkeypatch.setattr(show, "show", lambda *_: False)
    assert CliRunner().invoke(cli.make_app(["demo"]), ["demo"]).exit_code == 1


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(PrismaError, match="no images"):
        show.show(show.Options(data=tmp_path), Console(quiet=True))
    monkeypatch.setattr(show, "find_spec", lambda name: None)
    with pytest.raises(PrismaError, match="torch and pillow"):
        show.show(show.Options(data=tmp_path), Console(quiet=True))
    monkeypatch.setattr(photographs, "find_spec", lambda name: None)
    with pytest.raises(PrismaError, match="scikit-image"):
        photographs.photographs()


def test_a_home_that_cannot_be_written_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    folder = image_folder.cache_folder()
    assert folder.parent == tmp_path
    (folder / "probe").write_text(json.dumps({}))
