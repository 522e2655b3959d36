"""OffsetCommit, API key 8: a member or a tool stores the offsets of a group.

A committed offset is that of the next record to read, not of the last one read.

Version notes:
 0-1  removed in Kafka 4.0 (KIP-896)
 2    the retention time of the offset; no commit timestamp
 3    the response has the throttle time (KIP-124)
 4    the broker responds before it throttles (KIP-219)
 5    no retention time: retention is a setting of the broker (KIP-211)
 6    the leader epoch of the last record read (KIP-320)
 7    the instance id of a static member (KIP-345)
 8    flexible (KIP-482)
 9    groups of the KIP-848 protocol; the errors STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND
 10   topic ids instead of names (KIP-848)
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
    # Kafka stores null as the empty string.
    committed_metadata: str | None = string(nullable_since=0)


@part
class OffsetCommitRequestTopic:
    name: Topic = string(until=9, ignorable=True)
    topic_id: Uuid = uuid(since=10, ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@message(api_key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest:
    group_id: GroupId = string()
    # -1 with an empty member id for a tool, or for a consumer with manual assignment.
    generation_id_or_member_epoch: Generation = int32(since=1, default=-1, ignorable=True)
    member_id: MemberId = string(since=1, ignorable=True)
    group_instance_id: InstanceId | None = string(since=7, nullable_since=7, default=None)
    # -1 for the broker's setting.
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
