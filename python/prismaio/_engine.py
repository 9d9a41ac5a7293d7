"""The engine's process. Run as a program by launch.py, never imported by training.

    python -IBS _engine.py --listen-fd N --memory-bytes N --buffer-bytes N --depth N
        --source NAME --package-path FOLDER[:FOLDER]

What runs first is not the engine: it forks while it has neither a thread nor a native module, and
ends. So the engine is nobody's child but init's, which takes its exit status when it ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import types

# Ctrl-C and a scheduler's notices are for the training.
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(words: list[str]) -> None:
    """Serves until the last client is gone."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    _settle_in()
    _find_package(options["--package-path"].split(os.pathsep))
    from prismaio import _core

    _core.run_engine(
        listen_fd=int(options["--listen-fd"]),
        memory_bytes=int(options["--memory-bytes"]),
        buffer_bytes=int(options["--buffer-bytes"]),
        depth=int(options["--depth"]),
        source=options["--source"],
    )
    os._exit(0)  # whatever its threads are reading


def _settle_in() -> None:
    """Undoes what the program that started this may have handed down."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the kernel takes everything back
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:  # noqa: PTH123
        name.write("prismaio-engine")  # how ps and top call it


def _find_package(folders: list[str]) -> None:
    """Makes this package importable from the very folders that training has it from.

    Without running its `__init__`, which is the face that training sees.
    """
    # A script's own folder goes first, and here a name like torch would then mean an adapter.
    sys.path[:] = [path for path in sys.path if path not in folders]
    package = types.ModuleType("prismaio")
    package.__path__ = folders
    sys.modules["prismaio"] = package


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    main(sys.argv[1:])
