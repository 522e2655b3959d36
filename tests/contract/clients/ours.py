"""Kohort's own consumer. It does nothing but consume."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar

import kohort
from kohort import errors
from kohort.client.options import GivenOptions
from kohort.types import Offset, Partition, Topic
from tests.contract.clients.library import (
    HEARTBEAT_MS,
    METADATA_MS,
    Admin,
    Lack,
    Lacking,
    NoOffset,
    Place,
    Refused,
    Seen,
    Standing,
    Told,
    Wanted,
    Written,
    lacking,
)

_POLL_MS = 20

T = TypeVar("T")


def _ask(question: Callable[[], T]) -> T:
    """What it gave, or one of the contract's errors for one of its own."""
    try:
        return question()
    except errors.OffsetNotValid as error:
        raise NoOffset(str(error)) from error
    except errors.Fenced as error:
        raise Refused("FENCED_INSTANCE_ID", str(error)) from error
    except (errors.GroupRefused, errors.BrokerRefused) as error:
        raise Refused(error.code.name, str(error)) from error
    except errors.CommitFailed as error:
        # It does not say which of the errors it was that a lost member gets.
        raise Refused("UNKNOWN_MEMBER_ID", str(error)) from error


class _Listener(kohort.ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.told: list[Told] = []

    def on_partitions_assigned(self, partitions: Collection[kohort.TopicPartition]) -> None:
        self._note("assigned", partitions)

    def on_partitions_revoked(self, partitions: Collection[kohort.TopicPartition]) -> None:
        self._note("revoked", partitions)

    def on_partitions_lost(self, partitions: Collection[kohort.TopicPartition]) -> None:
        self._note("lost", partitions)

    def _note(
        self,
        what: Literal["assigned", "revoked", "lost"],
        partitions: Collection[kohort.TopicPartition],
    ) -> None:
        if partitions:
            self.told.append(Told(what, frozenset(Place(*each) for each in partitions)))


class OurMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        if wanted.protocol == "consumer":
            assert "group_protocol" not in GivenOptions.__annotations__, "use it"
            raise Lacking("group_protocol")
        self._listener = _Listener()
        self._consumer = kohort.Consumer(
            bootstrap_servers=bootstrap_servers,
            group_id=wanted.group,
            group_instance_id=wanted.instance,
            partition_assignment_strategy=wanted.assignors,
            auto_offset_reset=wanted.reset,
            enable_auto_commit=wanted.commits_by_itself,
            auto_commit_interval_ms=100,
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=wanted.session_ms,
            max_poll_interval_ms=wanted.poll_interval_ms,
            max_partition_fetch_bytes=wanted.partition_bytes,
            isolation_level="read_committed" if wanted.is_reading_committed else "read_uncommitted",
            fetch_max_wait_ms=50,
            retry_backoff_ms=20,
            metadata_max_age_ms=METADATA_MS,
        )
        if wanted.pattern is not None:
            self._consumer.subscribe(pattern=wanted.pattern, listener=self._listener)
        elif wanted.topics:
            self.subscribe(*wanted.topics)

    @property
    def told(self) -> Sequence[Told]:
        return self._listener.told

    def stall(self) -> None:
        """It is not polled unless somebody does."""

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(topics, listener=self._listener)

    def assign(self, *places: Place) -> None:
        self._consumer.assign([_at(place) for place in places])

    def poll(self) -> list[Seen]:
        polled = _ask(lambda: self._consumer.poll(_POLL_MS))
        return [_see(record) for records in polled.values() for record in records]

    def assignment(self) -> set[Place]:
        return {Place(*each) for each in self._consumer.assignment()}

    def commit(self, standings: Mapping[Place, Standing] | None = None) -> None:
        if standings is None:
            _ask(self._consumer.commit)
            return
        positions = {
            _at(place): kohort.Position(
                offset=Offset(standing.offset),
                metadata=standing.metadata,
                leader_epoch=-1 if standing.leader_epoch is None else standing.leader_epoch,
            )
            for place, standing in standings.items()
        }
        _ask(lambda: self._consumer.commit(positions))

    def committed(self, place: Place) -> Standing | None:
        found = _ask(lambda: self._consumer.committed(_at(place)))
        if found is None:
            return None
        return Standing(
            offset=found.offset,
            metadata=found.metadata,
            leader_epoch=None if found.leader_epoch < 0 else found.leader_epoch,
        )

    def position(self, place: Place) -> int:
        return _ask(lambda: self._consumer.position(_at(place)))

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(_at(place), offset)

    def pause(self, *places: Place) -> None:
        self._consumer.pause(*map(_at, places))

    def resume(self, *places: Place) -> None:
        self._consumer.resume(*map(_at, places))

    def span(self, place: Place) -> tuple[int, int]:
        at = _at(place)
        first = self._consumer.beginning_offsets([at])[at]
        return first, self._consumer.end_offsets([at])[at]

    def offset_for_time(self, place: Place, timestamp_ms: int) -> int | None:
        at = _at(place)
        found = self._consumer.offsets_for_times({at: timestamp_ms})[at]
        return None if found is None else found.offset

    def close(self) -> None:
        self._consumer.close()


def _at(place: Place) -> kohort.TopicPartition:
    return kohort.TopicPartition(Topic(place.topic), Partition(place.partition))


def _see(record: kohort.ConsumerRecord) -> Seen:
    return Seen(
        place=Place(record.topic, record.partition),
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple((name, text or b"") for name, text in record.headers),
        timestamp_ms=record.timestamp,
    )


class Ours:
    name = "kohort.Consumer"
    version = "of this repository"
    lacks: Mapping[str, Lack] = {
        "producing": Lack(reason="Kohort has no producer of its own."),
        "administration": Lack(reason="Kohort has no administration client of its own."),
        "consumer-protocol": Lack(reason="It has only the classic group protocol."),
    }

    def join(self, bootstrap_servers: str, wanted: Wanted) -> OurMember:
        return OurMember(bootstrap_servers, wanted)

    def administer(self, _bootstrap_servers: str, /) -> Admin:
        raise lacking(kohort, "Admin")

    def produce(
        self,
        _bootstrap_servers: str,
        _topic: str,
        _records: Sequence[Written],
        /,
        **_options: Any,
    ) -> list[int]:
        raise lacking(kohort, "Producer")

    def produce_in_transactions(
        self, _bootstrap_servers: str, _topic: str, /, **_values: bytes
    ) -> None:
        raise lacking(kohort, "Producer")
