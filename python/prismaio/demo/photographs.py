"""Real photographs that come with two packages on PyPI, and crops of them as JPEGs."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prismaio.errors import PrismaError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["crops", "photographs"]

_QUALITY = 100  # with it, a pixel takes about as many bytes as one of ImageNet
_SPREAD = 0.5  # of the logarithm of sizes
_SHAPES = ((4, 3), (3, 4), (1, 1), (3, 2))
_NEAR = 1.15  # a size this close to what was wanted is taken

# The packages hold drawings, masks and text as well; these are photographs.
_PICTURES = {
    "skimage": (
        "data",
        (
            "astronaut.png",
            "brick.png",
            "camera.png",
            "chelsea.png",
            "coffee.png",
            "coins.png",
            "grass.png",
            "gravel.png",
            "hubble_deep_field.jpg",
            "ihc.png",
            "moon.png",
            "motorcycle_left.png",
            "retina.jpg",
            "rocket.jpg",
        ),
    ),
    "sklearn": ("datasets/images", ("china.jpg", "flower.jpg")),
}


def photographs() -> dict[str, Path]:
    """The photographs of the installed packages, by the name of what they show.

    Raises:
        PrismaError: If no package is installed that brings any.
    """
    found: dict[str, Path] = {}
    for package, (folder, names) in _PICTURES.items():
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            paths = (Path(spec.origin).parent / folder / name for name in names)
            found |= {path.stem: path for path in paths if path.exists()}
    if not found:
        raise PrismaError(
            "the demo makes its data set from the photographs that come with scikit-image and "
            'scikit-learn, and neither is installed: pip install "prismaio[demo]", or give '
            "a folder of your own (--data)"
        )
    return found


def crops(path: Path, count: int, mean_bytes: int, seed: str) -> Iterator[bytes]:
    """JPEGs of random parts of a photograph; their sizes spread log-normally around a mean."""
    from PIL import Image

    rng = random.Random(seed)
    with Image.open(path) as photograph:
        picture = photograph.convert("L" if photograph.mode == "L" else "RGB")
    bytes_per_pixel = 0.6
    for _ in range(count):
        wanted_bytes = _lognormal(rng, mean_bytes)
        part, shape = _random_part(picture, rng)
        content = b""
        for _ in range(2):  # how well a part can be compressed shows only afterwards
            content, pixels = _encode(part, shape, wanted_bytes / bytes_per_pixel)
            bytes_per_pixel = len(content) / pixels
            if 1 / _NEAR < len(content) / wanted_bytes < _NEAR:
                break
        yield content


def _lognormal(rng: random.Random, mean: int) -> float:
    drawn = rng.lognormvariate(-(_SPREAD**2) / 2, _SPREAD)  # its mean is 1
    return mean * min(max(drawn, 0.1), 6.0)


def _random_part(picture: Image, rng: random.Random) -> tuple[Image, tuple[int, int]]:
    """A part of the picture that has one of the usual shapes, and that shape."""
    shape = rng.choice(_SHAPES)
    unit = min(picture.width / shape[0], picture.height / shape[1]) * rng.uniform(0.5, 1.0)
    width, height = int(shape[0] * unit), int(shape[1] * unit)
    left, top = rng.randint(0, picture.width - width), rng.randint(0, picture.height - height)
    return picture.crop((left, top, left + width, top + height)), shape


def _encode(part: Image, shape: tuple[int, int], pixels: float) -> tuple[bytes, int]:
    """A JPEG of about so many pixels, and how many it has."""
    unit = (pixels / (shape[0] * shape[1])) ** 0.5
    size = max(32, round(shape[0] * unit)), max(32, round(shape[1] * unit))
    content = io.BytesIO()
    part.resize(size).save(content, "JPEG", quality=_QUALITY)
    return content.getvalue(), size[0] * size[1]
