"""The engine's process. Run as a program by launch.py, never imported by training.

    python -IBS _engine.py --listen-fd N --memory-bytes N --buffer-bytes N --depth N
        --source NAME --package-path FOLDER[:FOLDER]

What runs first is not the engine: it forks while it has neither a thread nor a native module, and
ends. So the engine is nobody's child but init's, which takes its exit status when it ends.

Training waits for all that happens here: no module of the standard library is imported that is not
part of the interpreter itself.
"""

import _signal as signal  # type: ignore[import-not-found]  # signal, but for its enums
import os
import sys

# Ctrl-C and a scheduler's notices are for the training.
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(words: list[str]) -> None:
    """Serves until the last client is gone."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    listen_fd = int(options["--listen-fd"])
    _close_all_but(0, 1, 2, listen_fd)
    _settle_in()
    _find_package(options["--package-path"].split(os.pathsep))
    from prismaio import _core

    _core.run_engine(
        listen_fd=listen_fd,
        memory_bytes=int(options["--memory-bytes"]),
        buffer_bytes=int(options["--buffer-bytes"]),
        depth=int(options["--depth"]),
        source=options["--source"],
    )
    os._exit(0)  # whatever its threads are reading


def _close_all_but(*kept: int) -> None:
    """Closes what the program that started this had marked for all its children."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # the very one that listed them


def _settle_in() -> None:
    """Undoes what else the program that started this may have handed down."""
    os.chdir("/")
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the kernel takes everything back
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)
    try:
        with open("/proc/self/comm", "w") as name:
            name.write("prismaio-engine")  # how ps and top call it
    except OSError:
        pass


def _find_package(folders: list[str]) -> None:
    """Makes this package importable from the very folders that training has it from.

    Without running its `__init__`, which is the face that training sees.
    """
    # A script's own folder goes first, and here a name like torch would then mean an adapter.
    sys.path[:] = [path for path in sys.path if path not in folders]
    package = type(sys)("prismaio")
    package.__path__ = folders
    sys.modules["prismaio"] = package


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    main(sys.argv[1:])
