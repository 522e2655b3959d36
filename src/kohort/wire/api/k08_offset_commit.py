"""OffsetCommit, API key 8: a member, or a tool on its behalf, keeps how far a group has come.

What is committed is the offset of the next record to read, not of the last one read.

Version notes:
 0-1  gone since Kafka 4.0 (KIP-896)
 2    how long to keep the offset; the commit's own timestamp is gone again
 3    the response tells the throttle time (KIP-124)
 4    the broker answers first and throttles afterwards (KIP-219)
 5    retention is the broker's setting; the request no longer carries it (KIP-211)
 6    the leader epoch of the last record read (KIP-320)
 7    a static member gives its instance id (KIP-345)
 8    flexible (KIP-482)
 9    open to groups of the KIP-848 protocol: STALE_MEMBER_EPOCH, GROUP_ID_NOT_FOUND
 10   topics go by id, no longer by name (KIP-848)
"""

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
from kohort.wire.schema import array, int16, int32, int64, message, part, string, uuid


@part
class OffsetCommitRequestPartition:
    partition_index: Partition = int32()
    committed_offset: Offset = int64()
    committed_leader_epoch: int = int32(since=6, default=-1, ignorable=True)
    # Kafka keeps null as the empty string.
    committed_metadata: str | None = string(nullable_since=0)


@part
class OffsetCommitRequestTopic:
    name: Topic = string(until=9, ignorable=True)
    topic_id: Uuid = uuid(since=10, ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@message(api_key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest:
    group_id: GroupId = string()
    # -1 with an empty member id commits from outside: a tool, or a consumer that assigns itself.
    generation_id_or_member_epoch: Generation = int32(since=1, default=-1, ignorable=True)
    member_id: MemberId = string(since=1, ignorable=True)
    group_instance_id: InstanceId | None = string(since=7, nullable_since=7, default=None)
    # -1 leaves it to the broker.
    retention_time_ms: Millis = int64(since=2, until=4, default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@part
class OffsetCommitResponsePartition:
    partition_index: Partition = int32()
    error_code: int = int16()


@part
class OffsetCommitResponseTopic:
    name: Topic = string(until=9, ignorable=True)
    topic_id: Uuid = uuid(since=10, ignorable=True)
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@message(api_key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitResponse:
    throttle_time_ms: Millis = int32(since=3, ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)
