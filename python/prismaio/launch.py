"""Starts an engine: a process of its own, by exec, that ends when its last client is gone."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

__all__ = ["start_engine"]


def start_engine(
    *, memory_bytes: int, buffer_bytes: int, depth: int
) -> tuple[str, subprocess.Popen[bytes]]:
    """Starts an engine and returns its address, an abstract socket's random name, and its process.

    It can be connected to at once: the connection waits until the engine has come up, and ends
    when it could not.

    Raises:
        OSError: If the system refuses a socket or a process.
    """
    address = f"prismaio-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("\0" + address)
        listener.listen(4096)
        number = listener.fileno()
        arguments = [str(value) for value in (number, memory_bytes, buffer_bytes, depth)]
        package_root = str(Path(__file__).resolve().parent.parent)
        inherited = [path for path in sys.path if path]
        process = subprocess.Popen(
            [sys.executable, "-m", "prismaio._engine", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=os.environ | {"PYTHONPATH": os.pathsep.join([package_root, *inherited])},
            pass_fds=(number,),
            start_new_session=True,
        )
    return address, process
