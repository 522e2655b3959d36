"""What a member is like: its name, its settings and its habits."""

from kohort.corpus.makes import Make
from kohort.types import InstanceId, Topic, value


@value
class Traits:
    make: Make
    client_id: str
    host: str
    instance_id: InstanceId | None = None
    topics: frozenset[Topic]
    assignors: tuple[str, ...]
    """In the order of its preference."""
    session_ms: int
    rebalance_ms: int = 300_000
    """Its max.poll.interval.ms, which it gives as its rebalance timeout."""
    heartbeat_ms: int = 3_000
    commit_ms: int | None
    """None for a program that never commits."""
    poll_ms: int = 400
    """How long it works on what one poll brings, at most."""
    assign_ms: int = 8
    """How long it thinks about who gets what when it leads."""
    clings: bool = False
    """It goes on working, and committing, on what was taken from it."""
    metadata: str = ""
    """What it writes beside its offsets."""
