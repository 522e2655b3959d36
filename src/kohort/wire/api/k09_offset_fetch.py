"""OffsetFetch, API key 9: the committed offsets of groups, for members and tools.

Up to version 7 a request is for one group, and its topics are top-level fields. From version 8 on
it is for several groups, and the same fields are in a struct per group.

Version notes:
 0   removed in Kafka 4.0 (KIP-896); it read from ZooKeeper
 1   offsets come from `__consumer_offsets`
 2   null requests all topics of the group; an error for the whole response (KIP-88)
 3   the response has the throttle time (KIP-124)
 4   the broker responds before it throttles (KIP-219)
 5   the committed leader epoch (KIP-320)
 6   flexible (KIP-482)
 7   a client can require offsets without pending transactional commits (KIP-447)
 8   several groups per request (KIP-709)
 9   the id and epoch of a member of a KIP-848 group, which may be outdated
 10  topic ids instead of names (KIP-848)
"""

from kohort.types import GroupId, MemberId, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.schema import array, boolean, int16, int32, int64, message, part, string, uuid


@part
class OffsetFetchRequestTopic:
    name: Topic = string(until=7)
    partition_indexes: tuple[Partition, ...] = array("int32", until=7)


@part
class OffsetFetchRequestTopics:
    name: Topic = string(since=8, until=9, ignorable=True)
    topic_id: Uuid = uuid(since=10, ignorable=True)
    partition_indexes: tuple[Partition, ...] = array("int32", since=8)


@part
class OffsetFetchRequestGroup:
    group_id: GroupId = string(since=8)
    member_id: MemberId | None = string(since=9, nullable_since=9, default=None, ignorable=True)
    member_epoch: int = int32(since=9, default=-1, ignorable=True)
    # Null requests all topics.
    topics: tuple[OffsetFetchRequestTopics, ...] | None = array(
        OffsetFetchRequestTopics, since=8, nullable_since=8
    )


@message(api_key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchRequest:
    group_id: GroupId = string(until=7)
    topics: tuple[OffsetFetchRequestTopic, ...] | None = array(
        OffsetFetchRequestTopic, until=7, nullable_since=2
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, since=8)
    # If true, the response is UNSTABLE_OFFSET_COMMIT until the transaction has ended.
    require_stable: bool = boolean(since=7)


@part
class OffsetFetchResponsePartition:
    partition_index: Partition = int32(until=7)
    # -1 if no offset is committed; this is not an error.
    committed_offset: Offset = int64(until=7)
    committed_leader_epoch: int = int32(since=5, until=7, default=-1, ignorable=True)
    metadata: str | None = string(until=7, nullable_since=0)
    error_code: int = int16(until=7)


@part
class OffsetFetchResponseTopic:
    name: Topic = string(until=7)
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(
        OffsetFetchResponsePartition, until=7
    )


@part
class OffsetFetchResponsePartitions:
    partition_index: Partition = int32(since=8)
    # -1 if no offset is committed; this is not an error.
    committed_offset: Offset = int64(since=8)
    committed_leader_epoch: int = int32(since=8, default=-1, ignorable=True)
    metadata: str | None = string(since=8, nullable_since=8)
    error_code: int = int16(since=8)


@part
class OffsetFetchResponseTopics:
    name: Topic = string(since=8, until=9, ignorable=True)
    topic_id: Uuid = uuid(since=10, ignorable=True)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = array(
        OffsetFetchResponsePartitions, since=8
    )


@part
class OffsetFetchResponseGroup:
    group_id: GroupId = string(since=8)
    topics: tuple[OffsetFetchResponseTopics, ...] = array(OffsetFetchResponseTopics, since=8)
    error_code: int = int16(since=8)


@message(api_key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchResponse:
    throttle_time_ms: Millis = int32(since=3, ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7, ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, since=8)
