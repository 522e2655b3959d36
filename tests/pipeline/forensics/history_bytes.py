"""Small histories of groups as bytes: records as a coordinator keeps them, and logs that hold them.

    history = History()
    history.formed("g", 1, {"a": "t0 t1", "b": "t2"}, at=10)
    history.committed("g", "t0", 42, at=11)
    history.removed("g", "t0", at=12)
    history.noted(MemberGone(...))
    history.emptied("g", 2, at=13)
    history.deleted("g", at=14)

Times are milliseconds. A place is a topic and a partition: t0. Records are encoded by the node's
own code; `records` makes a DataFrame of them, `write` a log directory through the real log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kohort.coordinator.events import GroupEvent, MemberInfo
from kohort.coordinator.record_codec import KeyedRecord, encode_record
from kohort.coordinator.records import (
    ClassicGroupMember,
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
)
from kohort.log.catalog import Catalog
from kohort.node.events_topic import records_of
from kohort.pipeline.forensics import tables
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    Uuid,
)
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)

OFFSETS = Topic("__consumer_offsets")
EVENTS = Topic("__kohort_events")

SMALL_SEGMENTS = {"internal.segment.bytes": "400", "index.interval.bytes": "100"}

Place = tuple[Topic, Partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A record and its position."""

    topic: Topic
    partition: Partition
    offset: Offset
    at: Millis
    key: bytes | None
    value: bytes | None


def place(text: str) -> Place:
    """`t0` as topic t, partition 0."""
    name = text.rstrip("0123456789")
    return Topic(name), Partition(int(text[len(name) :]))


def places(text: str) -> tuple[TopicPartitions, ...]:
    """`t0 t1 u0` as wire values."""
    found: dict[Topic, list[Partition]] = {}
    for topic, partition in map(place, text.split()):
        found.setdefault(topic, []).append(partition)
    return tuple(
        TopicPartitions(topic=topic, partitions=tuple(each)) for topic, each in found.items()
    )


def timestamp_of(at: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)


def party(member_id: str, instance_id: str | None = None) -> MemberInfo:
    return MemberInfo(
        member_id=MemberId(member_id),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        client_id=f"client of {member_id}",
        client_host="/10.0.0.1",
    )


def member(
    member_id: str, assigned: str, *, instance_id: str | None = None, owned: str = ""
) -> ClassicGroupMember:
    topics = sorted({place(each)[0] for each in assigned.split()})
    subscription = Subscription(topics=tuple(topics), owned_partitions=places(owned))
    known = party(member_id, instance_id)
    return ClassicGroupMember(
        member_id=known.member_id,
        instance_id=known.instance_id,
        client_id=known.client_id,
        client_host=known.client_host,
        rebalance_timeout_ms=Millis(60_000),
        session_timeout_ms=Millis(10_000),
        subscription=encode_subscription(subscription),
        assignment=encode_assignment(Assignment(assigned_partitions=places(assigned))),
    )


class History:
    """The records of one partition of `__consumer_offsets`, and of `__kohort_events`."""

    def __init__(self, partition: int = 0) -> None:
        self.partition = Partition(partition)
        self.kept: list[Kept] = []

    def formed(
        self,
        group: str,
        generation: int,
        members: Mapping[str, str] | Iterable[ClassicGroupMember],
        *,
        at: int,
        protocol: str = "range",
        protocol_type: str = "consumer",
    ) -> None:
        """A generation: the assignments by member id, or the members themselves."""
        if isinstance(members, Mapping):
            members = [member(name, assigned) for name, assigned in members.items()]
        all_members = tuple(members)
        record = ClassicGroupMetadata(
            group_id=GroupId(group),
            protocol_type=protocol_type,
            generation=Generation(generation),
            protocol=protocol if all_members else None,
            leader=all_members[0].member_id if all_members else None,
            state_since_ms=Millis(at),
            members=all_members,
        )
        self.keep(record, at=at)

    def emptied(self, group: str, generation: int, *, at: int) -> None:
        self.formed(group, generation, (), at=at)

    def deleted(self, group: str, *, at: int) -> None:
        self.keep(GroupRemoved(group_id=GroupId(group)), at=at)

    def committed(
        self, group: str, where: str, offset: int, *, at: int, metadata: str = ""
    ) -> None:
        topic, partition = place(where)
        record = OffsetCommitted(
            group_id=GroupId(group),
            topic=topic,
            partition=partition,
            offset=Offset(offset),
            metadata=metadata,
            commit_ms=Millis(at),
        )
        self.keep(record, at=at)

    def removed(self, group: str, where: str, *, at: int) -> None:
        topic, partition = place(where)
        record = OffsetRemoved(group_id=GroupId(group), topic=topic, partition=partition)
        self.keep(record, at=at)

    def noted(self, note: GroupEvent, bytes_max: int = 1_000_000) -> None:
        for record in records_of(note, bytes_max):
            self.event(record.value, key=record.key, at=note.at)

    def event(self, value: bytes | None, *, at: int, key: bytes | None = b"g") -> None:
        self._add(EVENTS, Partition(0), key, value, at)

    def keep(self, record: KeyedRecord, *, at: int) -> None:
        self.raw(*encode_record(record), at=at)

    def raw(self, key: bytes | None, value: bytes | None, *, at: int = 0) -> None:
        self._add(OFFSETS, self.partition, key, value, at)

    def _add(
        self, topic: Topic, partition: Partition, key: bytes | None, value: bytes | None, at: int
    ) -> None:
        offset = sum(each.topic == topic for each in self.kept)
        self.kept.append(
            Kept(
                topic=topic,
                partition=partition,
                offset=Offset(offset),
                at=Millis(at),
                key=key,
                value=value,
            )
        )

    def of(self, topic: Topic) -> list[Kept]:
        return [each for each in self.kept if each.topic == topic]


def some_history(partition: int = 0, commits: int = 20) -> History:
    """A sample of every kind of record: 22 records and an event."""
    history = History(partition)
    history.formed("g", 1, {"a": "t0 t1"}, at=1_000)
    for number in range(commits):
        history.committed("g", f"t{number % 2}", number, at=2_000 + number)
    history.removed("g", "t0", at=9_000)
    history.event(b'{"event":"pending-expired","at":9001,"group_id":"g","member_id":"m"}', at=9_001)
    return history


def rows(kept: Iterable[Kept]) -> list[tuple[Any, ...]]:
    """Records with the columns of bronze."""
    return [
        (each.topic, each.partition, each.offset, timestamp_of(each.at), each.key, each.value)
        for each in kept
    ]


def records(spark: SparkSession, *histories: History) -> DataFrame:
    kept = [each for history in histories for each in history.kept]
    return spark.createDataFrame(rows(kept), tables.RECORDS.ddl)


def write(
    directory: Path,
    *histories: History,
    partitions: int = 1,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Write a log directory with these records, one batch for each."""
    catalog, _ = Catalog.open(directory, Millis(0))
    for number, (topic, count) in enumerate(((OFFSETS, partitions), (EVENTS, 1))):
        catalog.create_topic(topic, Uuid(bytes([number + 1] * 16)), count, settings or {})
    for history in histories:
        for each in history.kept:
            log = catalog.partition(each.topic, each.partition)
            assert log is not None
            record = NewRecord(key=each.key, value=each.value, timestamp=each.at)
            log.append_trusted(encode(NewBatch(records=(record,))), each.at)
    catalog.close(Millis(0))


def without(history: History, *gone: int) -> History:
    """The history after compaction has removed the records with these offsets."""
    left = History(history.partition)
    left.kept = [each for each in history.kept if each.topic != OFFSETS or each.offset not in gone]
    return left


def repeated(history: History, *times: int) -> History:
    """The history with duplicates of the records with these offsets."""
    more = History(history.partition)
    more.kept = history.kept + [replace(each) for each in history.kept if each.offset in times]
    return more


def dicts(frame: DataFrame, *names: str) -> list[dict[str, Any]]:
    """Some columns of all rows, in the order of those columns."""
    chosen = frame.select(*names) if names else frame
    return [row.asDict(recursive=True) for row in chosen.orderBy(*chosen.columns[:6]).collect()]


def tuples(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """Some columns of all rows as tuples, sorted; times as milliseconds."""
    times = {name for name, kind in frame.dtypes if kind == "timestamp"}
    chosen = [f"unix_millis({name}) AS {name}" if name in times else name for name in names]
    found = [tuple(row) for row in frame.selectExpr(*chosen).collect()]
    return sorted(found, key=repr)
