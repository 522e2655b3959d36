"""The interface that wraps every client library.

Each library has one module for its consumer and producer, and one for its admin client. A member is
one consumer; it makes progress while it is polled. Errors of a library are translated to the ones
below. `limitations` lists what a library cannot do; if asked for it, it raises NotSupported.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

HEARTBEAT_MS = 50

SESSION_MS = 20_000
"""Longer than any test, so that a busy machine does not time out a live member."""

SHORT_SESSION_MS = 1500
"""For members that should time out; the brokers' settings allow it."""

METADATA_MS = 200
"""How often a client refreshes its metadata."""

Headers = Sequence[tuple[str, bytes]]

Reset = Literal["earliest", "latest", "none"]


class TopicAndPartition(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A committed offset, with its metadata and leader epoch."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedRecord:
    """A record as a consumer received it."""

    tp: TopicAndPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord:
    """A record to produce."""

    partition: int = 0
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: Headers = field(default=())
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """A consumer that subscribes to topics or to a pattern, or is assigned later."""

    group: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assignors: tuple[str, ...] = ("range",)
    instance: str | None = None
    auto_commit: bool = False
    reset: Reset = "earliest"
    session_ms: int = SESSION_MS
    poll_interval_ms: int = 300_000
    max_partition_bytes: int = 1024 * 1024
    read_committed: bool = False
    protocol: Literal["classic", "consumer"] = "classic"


class ListenerCall(NamedTuple):
    """One call of a member's rebalance listener."""

    what: Literal["assigned", "revoked", "lost"]
    tps: frozenset[TopicAndPartition]


class RequestRejected(Exception):
    """The broker or the library rejected a request. The name is Kafka's error name."""

    def __init__(self, name: str, message: str = "") -> None:
        super().__init__(f"{name} {message}")
        self.name = name


class NoValidOffset(RequestRejected):
    """No offset is committed, or it is out of range, and there is no reset policy."""

    def __init__(self, message: str) -> None:
        super().__init__("OFFSET_OUT_OF_RANGE", message)


class NotSupported(Exception):
    """The library does not have this feature."""


def not_supported(owner: object, name: str) -> NotSupported:
    """The exception for a feature that the library lacks; asserts that it still lacks it."""
    assert not hasattr(owner, name), f"{owner} has {name} now: use it"
    return NotSupported(f"{owner} has no {name}")


class Member(Protocol):
    def poll(self) -> list[ConsumedRecord]:
        """New records. Libraries also do their group work here. Raises RequestRejected."""

    def assignment(self) -> set[TopicAndPartition]: ...

    @property
    def listener_calls(self) -> Sequence[ListenerCall]:
        """The calls of its listener, in order, without those that have no partitions."""

    def stall(self) -> None:
        """Stop polling, also where a background thread polls."""

    def subscribe(self, *topics: str) -> None:
        """Replace the subscription."""

    def assign(self, *tps: TopicAndPartition) -> None:
        """Assign manually, without group management."""

    def commit(self, to_commit: Mapping[TopicAndPartition, CommittedOffset] | None = None) -> None:
        """Commit the current positions or these offsets synchronously. Raises RequestRejected."""

    def committed(self, tp: TopicAndPartition) -> CommittedOffset | None: ...

    def position(self, tp: TopicAndPartition) -> int: ...

    def seek(self, tp: TopicAndPartition, offset: int) -> None: ...

    def pause(self, *tps: TopicAndPartition) -> None: ...

    def resume(self, *tps: TopicAndPartition) -> None: ...

    def offset_range(self, tp: TopicAndPartition) -> tuple[int, int]:
        """The beginning and the end offset."""

    def offset_for_time(self, tp: TopicAndPartition, timestamp_ms: int) -> int | None: ...

    def close(self) -> None:
        """Leave the group; a static member closes without leaving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    instance: str | None
    tps: frozenset[TopicAndPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as an admin client describes it."""

    state: str
    assignor: str
    members: tuple[MemberDescription, ...]


class Admin(Protocol):
    """Every method raises RequestRejected if the broker rejects the request."""

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None: ...

    def grow_topic(self, topic: str, partitions: int) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> Collection[str]: ...

    def partitions(self, topic: str) -> int: ...

    def brokers(self) -> Collection[str]:
        """Their addresses."""

    def setting(self, topic: str, name: str) -> str | None:
        """The effective value."""

    def set(self, topic: str, name: str, value: str | None) -> None:
        """None resets it to the default."""

    def delete_records(self, tp: TopicAndPartition, before: int) -> int:
        """Returns the new beginning offset."""

    def latest_by_time(self, tp: TopicAndPartition, /) -> int:
        """The offset of the record with the greatest timestamp."""

    def describe_group(self, group: str) -> GroupDescription: ...

    def groups(self) -> Collection[str]: ...

    def delete_group(self, group: str, /) -> None: ...

    def offsets(self, group: str) -> Mapping[TopicAndPartition, CommittedOffset]: ...

    def alter_offsets(
        self, group: str, to_commit: Mapping[TopicAndPartition, CommittedOffset], /
    ) -> None: ...

    def delete_offsets(self, group: str, /, *tps: TopicAndPartition) -> None: ...

    def remove_instance(self, group: str, instance: str, /) -> None: ...

    def remove_all(self, group: str, /) -> None:
        """Remove every member."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limitation:
    """Why a library cannot do something, and how to check that this is still true.

    Either the test runs and must raise the exception; or, where that would take long, `is_there`
    inspects the library.
    """

    reason: str
    raises: type[Exception] = NotSupported
    is_there: Callable[[], bool] | None = None


class ClientLibrary(Protocol):
    name: str

    limitations: Mapping[str, Limitation]
    """Features that behaviours need and this library lacks."""

    @property
    def version(self) -> str: ...

    def join(self, bootstrap_servers: str, options: MemberOptions) -> Member: ...

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[ProducerRecord],
        /,
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        """Produce with acks=all; returns the offsets. Raises RequestRejected."""

    def produce_in_transactions(
        self, bootstrap_servers: str, topic: str, /, *, committed: bytes, aborted: bytes
    ) -> None:
        """Produce one record in an aborted and one in a committed transaction."""

    def administer(self, bootstrap_servers: str, /) -> Admin: ...
