"""What a client library must be able to do here, whatever it calls it.

One file per library says how. A member is one consumer of one topic; it joins while it is polled,
and has seen, when it is closed, whatever `poll` gave.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

HEARTBEAT_MS = 100
SESSION_MS = 1200
"""Short, so that a crash is soon noticed; a node allows it by its settings."""

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A record as a consumer got it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A consumer to be made."""

    topic: str
    group: str
    assignor: str = "range"
    instance: str | None = None
    commits_by_itself: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A record to be produced."""

    partition: int = 0
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: Headers = field(default=())
    timestamp_ms: int | None = None


class Fenced(Exception):
    """Another client has taken this one's place under its instance id."""


class Member(Protocol):
    def poll(self) -> list[Seen]:
        """What has come; also where some libraries do their work. May raise Fenced."""

    def assignment(self) -> set[int]: ...

    @property
    def assignments(self) -> int:
        """How many times it was told its partitions."""

    def commit(self) -> None:
        """Where it stands, answered before this returns. Raises Fenced."""

    def committed(self, partition: int) -> int | None: ...

    def position(self, partition: int) -> int: ...

    def seek(self, partition: int, offset: int) -> None: ...

    def span(self, partition: int) -> tuple[int, int]:
        """The first offset, and the one after the last."""

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None: ...

    def close(self) -> None:
        """Leave the group, but for a static member, which only goes away."""


class Library(Protocol):
    name: str
    assignors: tuple[str, ...]
    codecs: tuple[str, ...]
    """Those it has the libraries for."""
    knows_fencing: bool
    """Whether it tells that a twin has taken its place; the others go on asking."""

    def join(self, bootstrap_servers: str, wanted: Wanted) -> Member: ...

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        """Their offsets, once all are acknowledged by all."""
