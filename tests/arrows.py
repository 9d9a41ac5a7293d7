"""Who may include or import whom: the arrows of the architecture, and what breaks them.

C++: base ◀ plan, source, buffer, wire ◀ engine; base ◀ plan, buffer, wire ◀ client ◀ plug-ins,
bindings. Sources and wire know a sample, which lives in plan. The core knows no Python.
Python: nothing imports an adapter, except programs of our own (command line, demo).
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOMS: dict[str, set[str]] = {  # room of cpp/prisma: the other rooms it may include
    "base": set(),
    "plan": {"base"},
    "source": {"base", "plan"},
    "buffer": {"base"},
    "wire": {"base", "plan"},
    "engine": {"base", "plan", "source", "buffer", "wire"},
    "client": {"base", "plan", "buffer", "wire"},
    "plugins": {"base", "plan", "buffer", "wire", "client"},
}
ADAPTERS = {"torch", "tensorflow", "jax", "fsspec"}
PROGRAMS = {"cli", "demo"}  # they stand outside and use the package as anyone would

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
PYTHON_HEADER = re.compile(r"^(Python\.h|pybind11/.*|nanobind/.*|.*/Python\.h)$")


def broken_arrows(root: Path) -> list[str]:
    """Every line in a checkout that breaks an arrow, as "file: what is wrong"."""
    found: list[str] = []
    for path in sorted((root / "cpp" / "prisma").rglob("*")):
        if path.suffix in {".h", ".hpp", ".cc", ".cpp"}:
            found += (f"{path.relative_to(root)}: {wrong}" for wrong in _in_cpp(path, root / "cpp"))
    package = root / "python" / "prismaio"
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.pyi")]):
        found += (f"{path.relative_to(root)}: {wrong}" for wrong in _in_python(path, package))
    return found


def _in_cpp(path: Path, cpp: Path) -> Iterator[str]:
    room = _room_of(path, cpp)
    if room not in ROOMS:
        yield f"{room} is not a room"
        return
    for quote, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if PYTHON_HEADER.match(name):
            yield f"the core knows no Python, and includes {name}"
        beside = path.parent / name
        target = beside if quote == '"' and beside.exists() else cpp / name
        other = _room_of(target, cpp)
        if other is not None and other != room and other not in ROOMS[room]:
            yield f"{room} may not include {other} ({name})"


def _room_of(path: Path, cpp: Path) -> str | None:
    """The room that a path, which may go over "..", ends in; nothing outside of cpp/prisma."""
    below = Path(os.path.relpath(path, cpp / "prisma")).parts
    if below[0] == os.pardir:
        return None
    return below[0] if len(below) > 1 else "prisma"


def _in_python(path: Path, package: Path) -> Iterator[str]:
    inside = path.relative_to(package).with_suffix("").parts
    if inside[0] in PROGRAMS:
        return
    for module in _imported(path, package):
        parts = module.split(".")
        if len(parts) < 2 or parts[0] != "prismaio" or parts[1] not in ADAPTERS:
            continue
        if parts[1] != inside[0]:
            yield f"nothing imports an adapter, and this imports {module}"


def _imported(path: Path, package: Path) -> Iterator[str]:
    """Full names of all that a file imports, wherever in the file it does."""
    here = ("prismaio", *path.relative_to(package).parts[:-1])  # the package that holds the file
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
            yield from _named_in_call(node, here)


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _named_in_call(call: ast.Call, here: tuple[str, ...]) -> Iterator[str]:
    name = call.args[0] if call.args else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        level = len(name.value) - len(name.value.lstrip("."))
        above = here[: len(here) - level + 1] if level else ()
        yield ".".join([*above, name.value.lstrip(".")])
