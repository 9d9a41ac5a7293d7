"""The tree is the architecture: these tests hold its arrows (see arrows.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from arrows import ADAPTERS, ROOMS, broken_arrows

ROOT = Path(__file__).parent.parent


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_this_tree_breaks_no_arrow() -> None:
    assert (ROOT / "cpp" / "prisma" / "base").is_dir()
    assert (ROOT / "python" / "prismaio" / "__init__.py").is_file()
    assert broken_arrows(ROOT) == []


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_may_include_its_own_files_and_those_below_it(tmp_path: Path, room: str) -> None:
    lines = [f'#include "prisma/{other}/x.h"' for other in sorted({room} | ROOMS[room])]
    write(tmp_path, f"cpp/prisma/{room}/x.cpp", "\n".join([*lines, "#include <vector>"]))
    assert broken_arrows(tmp_path) == []


@pytest.mark.parametrize(
    ("room", "other"),
    [
        (room, other)
        for room in sorted(ROOMS)
        for other in sorted(set(ROOMS) - ROOMS[room] - {room})
    ],
)
def test_a_room_that_includes_one_above_or_beside_it_is_found(
    tmp_path: Path, room: str, other: str
) -> None:
    write(tmp_path, f"cpp/prisma/{room}/x.h", f'#include "prisma/{other}/y.h"\n')
    assert broken_arrows(tmp_path) == [
        f"cpp/prisma/{room}/x.h: {room} may not include {other} (prisma/{other}/y.h)"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "#include <prisma/engine/y.h>",
        '  #  include   "prisma/engine/y.h"  // why not',
        '#include "../engine/y.h"',
        '#include "prisma/base/../engine/y.h"',
    ],
)
def test_engine_and_client_are_kept_apart_however_the_include_is_written(
    tmp_path: Path, line: str
) -> None:
    write(tmp_path, "cpp/prisma/engine/y.h", "")
    write(tmp_path, "cpp/prisma/base/z.h", "")
    write(tmp_path, "cpp/prisma/client/x_test.cpp", f"#include <string>\n{line}\n")
    (wrong,) = broken_arrows(tmp_path)
    assert wrong.startswith("cpp/prisma/client/x_test.cpp: client may not include engine")


@pytest.mark.parametrize("header", ["Python.h", "nanobind/nanobind.h", "python3.11/Python.h"])
def test_a_core_that_knows_python_is_found(tmp_path: Path, header: str) -> None:
    write(tmp_path, "cpp/prisma/base/x.h", f"#include <{header}>\n")
    assert broken_arrows(tmp_path) == [
        f"cpp/prisma/base/x.h: the core knows no Python, and includes {header}"
    ]


def test_a_folder_that_is_no_room_is_found(tmp_path: Path) -> None:
    write(tmp_path, "cpp/prisma/utils/x.h", "")
    assert broken_arrows(tmp_path) == ["cpp/prisma/utils/x.h: utils is not a room"]


@pytest.mark.parametrize(
    ("place", "line", "module"),
    [
        ("connect.py", "import prismaio.torch", "prismaio.torch"),
        ("connect.py", "import prismaio.torch as adapter", "prismaio.torch"),
        ("connect.py", "from prismaio import torch", "prismaio.torch"),
        ("connect.py", "from . import fsspec", "prismaio.fsspec"),
        ("connect.py", "from .jax import accelerate", "prismaio.jax.accelerate"),
        ("connect.py", "def f():\n    from prismaio.tensorflow import g", "prismaio.tensorflow.g"),
        ("control/tuner.py", "from .. import torch", "prismaio.torch"),
        ("control/tuner.py", "from ..torch import x", "prismaio.torch.x"),
        ("torch.py", "from .jax import x", "prismaio.jax.x"),
        (
            "connect.py",
            "import importlib\nimportlib.import_module('.torch', 'p')",
            "prismaio.torch",
        ),
        ("connect.py", "__import__('prismaio.jax')", "prismaio.jax"),
    ],
)
def test_whoever_imports_an_adapter_is_found(
    tmp_path: Path, place: str, line: str, module: str
) -> None:
    write(tmp_path, f"python/prismaio/{place}", line + "\n")
    assert broken_arrows(tmp_path) == [
        f"python/prismaio/{place}: nothing imports an adapter, and this imports {module}"
    ]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("torch.py", "import torch\nimport prismaio\nfrom prismaio.connect import connect"),
        ("torch/loader.py", "from . import samplers\nfrom .samplers import x\nimport torch.utils"),
        ("cli/demo.py", "import prismaio.torch"),
        ("connect.py", "import torch\nfrom .plan import torch_like\nfrom . import plan"),
    ],
)
def test_what_an_adapter_or_a_program_imports_is_its_own_matter(
    tmp_path: Path, place: str, line: str
) -> None:
    write(tmp_path, f"python/prismaio/{place}", line + "\n")
    assert broken_arrows(tmp_path) == []


def test_importing_prismaio_imports_no_framework_and_nothing_for_the_command_line() -> None:
    heavy = ADAPTERS | {"numpy", "pydantic", "typer", "click", "rich", "prometheus_client"}
    program = "import prismaio, sys; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    assert "prismaio" in loaded
    assert loaded & heavy == set()
