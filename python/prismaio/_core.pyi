"""PRISMA's data plane: what Python sees of the C++ core."""



def run_engine(*, listen_fd: int, memory_bytes: int, buffer_bytes: int, depth: int) -> None:
    """
    Serves clients of a listening socket, until the last one is gone. Takes the socket over.
    """

TO_THE_END: int = 18446744073709551615

class Sample:
    """
    One sample: a read-only buffer. Its room in the shared buffer is given back when the last view of it is gone.
    """

    def __len__(self) -> int: ...

    def __bytes__(self) -> bytes: ...

    def view(self) -> memoryview:
        """Its bytes in place. The room stays taken as long as the view lives."""

    @property
    def path(self) -> bytes:
        """The file's path, as bytes."""

    @property
    def position(self) -> int:
        """Where it stands in its plan, from 0."""

    @property
    def is_shared(self) -> bool:
        """
        Whether its bytes lie in the shared buffer, not in memory of this process.
        """

class Client:
    """One process's connection to an engine."""

    def __init__(self, address: str, session: int = 0) -> None:
        """Raises OSError when none answers."""

    def announce(self, plan: int, first_position: int, samples: list[tuple[bytes, int, int]]) -> None:
        """Says which (path, offset, length) come next."""

    def cancel(self, plan: int) -> None:
        """Drops what is left of a plan."""

    def tune(self, depth: int, buffer_bytes: int) -> None:
        """Sets the knobs; 0 leaves one as it is."""

    def take_at(self, plan: int, position: int, path: bytes, offset: int, length: int) -> Sample:
        """The sample at this position of a plan."""

    def take_path(self, path: bytes, offset: int, length: int) -> Sample:
        """The next untaken occurrence of a range in any plan, or a direct read."""

    @property
    def engine_lives(self) -> bool:
        """Whether the engine is still there."""

    @property
    def is_ours(self) -> bool:
        """False in a forked child."""

    def counters(self) -> dict[str, int]:
        """What was counted so far, by name."""
