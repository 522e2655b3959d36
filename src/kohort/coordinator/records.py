"""What happened and must be kept: the only things that change hard state.

They are Kafka's records of `__consumer_offsets` seen without their bytes; `recordcodec` knows
those. A tombstone is a record of its own kind, not a missing value.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kohort.coordinator.commands import OffsetColumns
from kohort.types import (
    ZERO_UUID,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
    maker,
    value,
)


@value
class FormedMember:
    """A member as the formed generation knows it: its chosen subscription and its assignment."""

    member_id: MemberId
    instance_id: InstanceId | None = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Millis
    session_timeout_ms: Millis
    subscription: bytes
    assignment: bytes


@value
class GenerationFormed:
    """A group has a generation whose members know what is theirs, or has become empty."""

    group_id: GroupId
    protocol_type: str
    generation: Generation
    protocol: str | None
    leader: MemberId | None
    state_since_ms: Millis
    """When the group entered the state this record leaves it in; expiry counts from it."""
    members: tuple[FormedMember, ...]


@value
class GroupRemoved:
    group_id: GroupId


@value
class OffsetCommitted:
    """A position kept for a group. With a producer id it is pending until its transaction ends."""

    group_id: GroupId
    topic: Topic
    partition: Partition
    offset: Offset
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: Millis
    expire_ms: Millis | None = None
    topic_id: Uuid = ZERO_UUID
    producer_id: ProducerId | None = None
    producer_epoch: ProducerEpoch | None = None


@value
class OffsetsCommitted:
    """As many plain positions of one moment, told by columns. In the log there is no such thing:
    it is written, read again and kept in mind as one `OffsetCommitted` for each."""

    group_id: GroupId
    columns: OffsetColumns
    commit_ms: Millis

    def __iter__(self) -> Iterator[OffsetCommitted]:
        places, columns = self.columns.places, self.columns
        group_id, commit_ms = self.group_id, self.commit_ms
        for topic, partition, offset, leader_epoch, topic_id in zip(
            places.topics,
            places.partitions,
            columns.offsets,
            columns.leader_epochs,
            places.topic_ids,
            strict=True,
        ):
            yield _make_offset(
                group_id,
                topic,
                partition,
                offset,
                leader_epoch,
                "",
                commit_ms,
                None,
                topic_id,
                None,
                None,
            )


_make_offset: Final = maker(OffsetCommitted)


@value
class OffsetRemoved:
    group_id: GroupId
    topic: Topic
    partition: Partition


@value
class TransactionEnded:
    """The marker a transaction leaves in the log: its pending offsets count, or vanish."""

    producer_id: ProducerId
    is_commit: bool


OneRecord: TypeAlias = (
    GenerationFormed | GroupRemoved | OffsetCommitted | OffsetRemoved | TransactionEnded
)

Record: TypeAlias = OneRecord | OffsetsCommitted


def one_by_one(records: Iterable[Record]) -> Iterator[OneRecord]:
    """As they are in the log."""
    for record in records:
        if isinstance(record, OffsetsCommitted):
            yield from record
        else:
            yield record
