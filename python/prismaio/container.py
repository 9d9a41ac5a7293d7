"""What this process may use: memory of its control groups and machine, descriptors of its limits.

Control groups come in two versions, may nest, and may be seen through a namespace. The limit in
force is the smallest on the way from the process's own group up to the root that it can see.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["MemoryLimit", "descriptor_limit", "memory_limit"]

_V1_FILES = ("memory.limit_in_bytes",)
# Past memory.high the kernel stalls a group rather than killing it: no room to plan with either.
_V2_FILES = ("memory.max", "memory.high")
_UNLIMITED_DESCRIPTORS = 1 << 20


class MemoryLimit(NamedTuple):
    """Bytes of memory that this process may use at most, and what sets that limit."""

    limit_bytes: int
    what: str  # "this container" or "this machine"


class _Hierarchy(NamedTuple):
    """One mounted control group file system that can limit memory."""

    mount_root: str  # the group that the mount shows as its top
    mount_point: str
    group: str  # of this process, counted from the file system's own root
    limit_files: tuple[str, ...]


def memory_limit(root: str = "/") -> MemoryLimit:
    """The smaller of the machine's memory and the limits of this process's control groups.

    Args:
        root: Where `proc` and the control group mounts are found; another one in tests only.
    """
    machine_bytes = _machine_memory_bytes(root)
    group_bytes = min(_group_limits(root), default=machine_bytes)
    if group_bytes < machine_bytes:
        return MemoryLimit(group_bytes, "this container")
    return MemoryLimit(machine_bytes, "this machine")


def descriptor_limit() -> int:
    """File descriptors that a process started from this one may have open (the soft limit)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _machine_memory_bytes(root: str) -> int:
    for line in _read_lines(os.path.join(root, "proc/meminfo")):
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) * 1024
    # Without /proc nothing is known: assume a machine that the smallest default fits.
    return 1 << 30


def _group_limits(root: str) -> Iterator[int]:
    for hierarchy in _memory_hierarchies(root):
        level = os.path.join(root, hierarchy.mount_point.lstrip("/"))
        steps = _seen_from(hierarchy.mount_root, hierarchy.group)
        for step in ("", *steps):
            level = os.path.join(level, step)
            for name in hierarchy.limit_files:
                yield from _limit_in(os.path.join(level, name))


def _memory_hierarchies(root: str) -> Iterator[_Hierarchy]:
    """Pairs each mount that mountinfo lists with this process's group in that hierarchy."""
    v1_group, v2_group = _own_groups(root)
    for line in _read_lines(os.path.join(root, "proc/self/mountinfo")):
        mount, _, file_system = line.partition(" - ")
        mount_fields, kind_fields = mount.split(" "), file_system.split(" ")
        if len(mount_fields) < 5 or len(kind_fields) < 3:
            continue
        mount_root, mount_point = (_unescape(field) for field in mount_fields[3:5])
        kind, options = kind_fields[0], kind_fields[2].split(",")
        if kind == "cgroup2" and v2_group is not None:
            yield _Hierarchy(mount_root, mount_point, v2_group, _V2_FILES)
        if kind == "cgroup" and "memory" in options and v1_group is not None:
            yield _Hierarchy(mount_root, mount_point, v1_group, _V1_FILES)


def _own_groups(root: str) -> tuple[str | None, str | None]:
    """This process's group in the version 1 memory hierarchy and in version 2's only one."""
    v1_group = v2_group = None
    for line in _read_lines(os.path.join(root, "proc/self/cgroup")):
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if number == "0" and not controllers:
            v2_group = group
        elif "memory" in controllers.split(","):
            v1_group = group
    return v1_group, v2_group


def _seen_from(mount_root: str, group: str) -> list[str]:
    """The group's path below the mount; nothing, the mount itself, where it lies outside of it."""
    steps = [step for step in group.split("/") if step]
    hidden = [step for step in mount_root.split("/") if step]
    inside = ".." not in steps and steps[: len(hidden)] == hidden
    return steps[len(hidden) :] if inside else []


def _limit_in(path: str) -> Iterator[int]:
    # A group may be gone, hidden or without a limit ("max"; in version 1 a huge number).
    for line in _read_lines(path):
        if line.strip().isdigit():
            yield int(line)


def _read_lines(path: str) -> list[str]:
    try:
        with open(path, errors="surrogateescape") as file:
            return file.read().split("\n")
    except OSError:
        return []


def _unescape(field: str) -> str:
    """Undoes mountinfo's octal escapes, as which a space in a path is written."""
    head, *rest = field.split("\\")
    return head + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)
