"""PRISMA's data plane: what Python sees of the C++ core."""



def listen_at(address: str) -> int:
    """
    A listening socket's descriptor. Raises OSError where the address is taken.
    """

def connect_to(address: str) -> int:
    """
    A connection's descriptor. Raises OSError when nobody of this user answers.
    """

def run_engine(*, listen_fd: int, memory_bytes: int, buffer_bytes: int, depth: int, source: str) -> None:
    """
    Serves clients of a listening socket, until the last one is gone. Takes the socket over. End the process after it, at once: threads may still be reading.
    """

TO_THE_END: int = 18446744073709551615

class Chunks:
    """Iterates over the pieces of a sample."""

    def __iter__(self) -> Chunks: ...

    def __next__(self) -> Sample: ...

class Sample:
    """
    One sample: a read-only buffer. Its room in the shared buffer is given back when the last view of it is gone.
    """

    def __len__(self) -> int: ...

    def __bytes__(self) -> bytes: ...

    def view(self) -> memoryview:
        """Its bytes in place. The room stays taken as long as the view lives."""

    def chunks(self) -> Chunks:
        """
        Its pieces in order, each a sample: one if it is small; a large one streams through the buffer. Raises OSError where reading fails.
        """

    @property
    def path(self) -> bytes:
        """The file's path, as bytes."""

    @property
    def position(self) -> int:
        """Where it stands in its plan, from 0."""

    @property
    def is_shared(self) -> bool:
        """
        Whether its bytes come from the shared buffer, not from memory of this process.
        """

    @property
    def is_large(self) -> bool:
        """
        Whether it is too large for the buffer in one piece. Asking for all of its bytes at once brings them together in this process's memory.
        """

def read_directly(path: bytes, offset: int, length: int, position: int = 0) -> Sample:
    """A sample of this process's own, without an engine."""

class Client:
    """One process's connection to an engine."""

    def __init__(self, address: str, session: int = 0) -> None:
        """Raises OSError when none answers."""

    def announce(self, plan: int, lane: int, first_position: int, samples: list[tuple[bytes, int, int]], by_path: bool = False) -> None:
        """
        Says which (path, offset, length) come next: for take_at, or by path for everybody in the session.
        """

    def settle(self) -> None:
        """Waits until the engine knows what was announced here, or is gone."""

    def cancel(self, plan: int, lane: int | None = None) -> None:
        """Drops what is left of a plan, or of one of its lanes."""

    def tune(self, depth: int, buffer_bytes: int) -> None:
        """Sets the knobs; 0 leaves one as it is."""

    def take_at(self, plan: int, lane: int, position: int, path: bytes, offset: int, length: int) -> Sample:
        """The sample at this position of a lane."""

    def take_path(self, path: bytes, offset: int, length: int) -> Sample:
        """
        The next untaken occurrence of a range in the session's plans, or a direct read.
        """

    def take_planned(self, path: bytes, offset: int, length: int) -> Sample | None:
        """The same, or None, and nothing read, when no plan holds it."""

    @property
    def session(self) -> int:
        """Clients of one session take from its plans."""

    @property
    def engine_pid(self) -> int:
        """The engine's process."""

    @property
    def engine_lives(self) -> bool:
        """Whether the engine is still there."""

    @property
    def is_lost(self) -> bool:
        """Whether the engine was found to be gone; asks nobody."""

    @property
    def is_ours(self) -> bool:
        """False in a forked child."""

    def counters(self) -> dict[str, int]:
        """What was counted so far, by name."""
