"""Records: the only values that change hard state.

They are Kafka's records of `__consumer_offsets` without their bytes, which `record_codec` knows. A
tombstone is a record class of its own, not a missing value.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

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
    value,
)


@value(kw_only=False)
class ClassicGroupMember:
    """A member of a stored generation: its subscription for the chosen protocol, its assignment."""

    member_id: MemberId
    client_id: str
    client_host: str
    rebalance_timeout_ms: Millis
    session_timeout_ms: Millis
    subscription: bytes
    assignment: bytes
    instance_id: InstanceId | None = None


@value
class ClassicGroupMetadata:
    """A classic group has a generation with an assignment, or has become empty."""

    group_id: GroupId
    protocol_type: str
    generation: Generation
    protocol: str | None
    leader: MemberId | None
    state_since_ms: Millis
    """The time at which the group entered the state it has after this record; expiry uses it."""
    members: tuple[ClassicGroupMember, ...]


@value
class GroupRemoved:
    group_id: GroupId


@value(kw_only=False)
class OffsetCommitted:
    """A committed offset. With a producer id it is pending until its transaction ends."""

    group_id: GroupId
    topic: Topic
    partition: Partition
    offset: Offset
    commit_ms: Millis
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: Uuid = ZERO_UUID
    expire_ms: Millis | None = None
    producer_id: ProducerId | None = None
    producer_epoch: ProducerEpoch | None = None


@value(kw_only=False)
class OffsetsCommitted:
    """The offsets of one commit as columns, without metadata and with one timestamp.

    It exists in memory only: the log holds one `OffsetCommitted` per partition.
    """

    group_id: GroupId
    columns: OffsetColumns
    commit_ms: Millis

    def __iter__(self) -> Iterator[OffsetCommitted]:
        partition_columns, columns = self.columns.partition_columns, self.columns
        group_id, commit_ms = self.group_id, self.commit_ms
        for topic, partition, offset, leader_epoch, topic_id in zip(
            partition_columns.topics,
            partition_columns.partitions,
            columns.offsets,
            columns.leader_epochs,
            partition_columns.topic_ids,
            strict=True,
        ):
            yield OffsetCommitted(
                group_id,
                topic,
                partition,
                offset,
                commit_ms,
                leader_epoch,
                "",
                topic_id,
            )


@value
class OffsetRemoved:
    group_id: GroupId
    topic: Topic
    partition: Partition


@value
class TransactionEnded:
    """The marker of a transaction: its pending offsets become committed, or are dropped."""

    producer_id: ProducerId
    is_commit: bool


@value
class UnknownRecord:
    """A record of a kind that this coordinator does not implement, as its raw bytes.

    Logs of Apache Kafka contain them: groups of other types. The coordinator keeps the last value
    of each key; None is a tombstone. No decision creates such a record.
    """

    key: bytes
    value: bytes | None

    @property
    def kind(self) -> int:
        """The number that the key begins with."""
        return int.from_bytes(self.key[:2])


OneRecord: TypeAlias = (
    ClassicGroupMetadata | GroupRemoved | OffsetCommitted | OffsetRemoved | TransactionEnded
)

Record: TypeAlias = OneRecord | OffsetsCommitted


def expand_columns(records: Iterable[Record]) -> Iterator[OneRecord]:
    """Expand columnar commits to the records that the log holds."""
    for record in records:
        if isinstance(record, OffsetsCommitted):
            yield from record
        else:
            yield record
