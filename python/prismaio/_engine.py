"""The engine's process: `python -m prismaio._engine LISTEN_FD MEMORY_BYTES BUFFER_BYTES DEPTH`."""

from __future__ import annotations

import os
import signal
import sys

from prismaio import _core


def main(arguments: list[str]) -> None:
    """Serves until the last client is gone."""
    listen_fd, memory_bytes, buffer_bytes, depth = map(int, arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the training
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.umask(0o077)
    _core.run_engine(
        listen_fd=listen_fd, memory_bytes=memory_bytes, buffer_bytes=buffer_bytes, depth=depth
    )


if __name__ == "__main__":
    main(sys.argv[1:])
