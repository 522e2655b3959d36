"""What a client library must be able to do here, whatever it calls it.

One file per library says how, and one more how it administers. A member is one consumer; it works
while it is polled. What a library refuses or is refused it tells as one of the errors below. What
it cannot do at all it says in `lacks`, and raises Lacking when it is asked for it anyway.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

HEARTBEAT_MS = 50

SESSION_MS = 20_000
"""Longer than any test: on a busy machine nobody is taken for dead who is not."""

SHORT_SESSION_MS = 1500
"""For those that are to be taken for dead; a broker allows it by its settings."""

METADATA_MS = 200
"""How soon a client learns of new topics and partitions."""

Headers = Sequence[tuple[str, bytes]]

Reset = Literal["earliest", "latest", "none"]


class Place(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A committed offset, with what was committed beside it."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A record as a consumer got it."""

    place: Place
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A record to be produced."""

    partition: int = 0
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: Headers = field(default=())
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A consumer to be made: of some topics, of all with names like a pattern, or assigned later.

    The short poll interval is for those that are to forget to poll.
    """

    group: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assignors: tuple[str, ...] = ("range",)
    instance: str | None = None
    commits_by_itself: bool = False
    reset: Reset = "earliest"
    session_ms: int = SESSION_MS
    poll_interval_ms: int = 300_000
    partition_bytes: int = 1024 * 1024
    is_reading_committed: bool = False
    protocol: Literal["classic", "consumer"] = "classic"


class Told(NamedTuple):
    """What a member's listener was told."""

    what: Literal["assigned", "revoked", "lost"]
    places: frozenset[Place]


class Refused(Exception):
    """The broker, or the library in its name, said no. The name is Kafka's for the error."""

    def __init__(self, name: str, message: str = "") -> None:
        super().__init__(f"{name} {message}")
        self.name = name


class NoOffset(Refused):
    """Nothing is committed, or it is out of range, and no other offset is to be taken instead."""

    def __init__(self, message: str) -> None:
        super().__init__("OFFSET_OUT_OF_RANGE", message)


class Lacking(Exception):
    """The library has no such thing."""


def lacking(owner: object, name: str) -> Lacking:
    """To be raised where a library would need something that it does not have; it is looked for."""
    assert not hasattr(owner, name), f"{owner} has {name} by now: use it"
    return Lacking(f"{owner} has no {name}")


class Member(Protocol):
    def poll(self) -> list[Seen]:
        """What has come; also where libraries do their work. Raises Refused and NoOffset."""

    def assignment(self) -> set[Place]: ...

    @property
    def told(self) -> Sequence[Told]:
        """What its listener was told, in order. That nothing was added or revoked is not told."""

    def stall(self) -> None:
        """From now on it is not polled, not even where it is polled by itself."""

    def subscribe(self, *topics: str) -> None:
        """To these topics instead of those before."""

    def assign(self, *places: Place) -> None:
        """Without a group's help."""

    def commit(self, standings: Mapping[Place, Standing] | None = None) -> None:
        """Where it stands, or what is given, answered before this returns. Raises Refused."""

    def committed(self, place: Place) -> Standing | None: ...

    def position(self, place: Place) -> int: ...

    def seek(self, place: Place, offset: int) -> None: ...

    def pause(self, *places: Place) -> None: ...

    def resume(self, *places: Place) -> None: ...

    def span(self, place: Place) -> tuple[int, int]:
        """The first offset, and the one after the last."""

    def offset_for_time(self, place: Place, timestamp_ms: int) -> int | None: ...

    def close(self) -> None:
        """Leave the group, but for a static member, which only goes away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    instance: str | None
    places: frozenset[Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A group, as administrators see it."""

    state: str
    assignor: str
    members: tuple[DescribedMember, ...]


class Admin(Protocol):
    """Every one of these raises Refused where the broker says no."""

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None: ...

    def grow_topic(self, topic: str, partitions: int) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> Collection[str]: ...

    def partitions(self, topic: str) -> int: ...

    def brokers(self) -> Collection[str]:
        """Their addresses."""

    def setting(self, topic: str, name: str) -> str | None:
        """As it holds, wherever it was set."""

    def set(self, topic: str, name: str, value: str | None) -> None:
        """None takes back what was set."""

    def delete_records(self, place: Place, before: int) -> int:
        """The first offset that is left."""

    def latest_by_time(self, place: Place, /) -> int:
        """The offset of the record with the greatest timestamp."""

    def describe_group(self, group: str) -> Described: ...

    def groups(self) -> Collection[str]: ...

    def delete_group(self, group: str, /) -> None: ...

    def offsets(self, group: str) -> Mapping[Place, Standing]: ...

    def alter_offsets(self, group: str, standings: Mapping[Place, Standing], /) -> None: ...

    def delete_offsets(self, group: str, /, *places: Place) -> None: ...

    def remove_instance(self, group: str, instance: str, /) -> None: ...

    def remove_all(self, group: str, /) -> None:
        """Every member."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Why a library cannot do something, and how to see that it is still so.

    Either by asking for it, and what is then raised; or, where it would take long to find out, by
    a look at the library.
    """

    reason: str
    raises: type[Exception] = Lacking
    is_there: Callable[[], bool] | None = None


class Library(Protocol):
    name: str

    lacks: Mapping[str, Lack]
    """What a behaviour may need and this library does not have."""

    @property
    def version(self) -> str: ...

    def join(self, bootstrap_servers: str, wanted: Wanted) -> Member: ...

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
        /,
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        """Their offsets, once all are acknowledged by all. Raises Refused."""

    def produce_in_transactions(
        self, bootstrap_servers: str, topic: str, /, *, committed: bytes, aborted: bytes
    ) -> None:
        """One record each, in a transaction of its own: the first aborted, then one committed."""

    def administer(self, bootstrap_servers: str, /) -> Admin: ...
