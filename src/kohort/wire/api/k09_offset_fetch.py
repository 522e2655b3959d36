"""OffsetFetch, API key 9: how far a group has come, for a member that starts or a tool that looks.

Until version 7 the request is about one group and its topics stand at the top; from 8 on it is
about several, and the same fields stand one level deeper in structs of their own.

Version notes:
 0   gone since Kafka 4.0 (KIP-896); it read from ZooKeeper
 1   offsets come from `__consumer_offsets`
 2   null asks for all topics of the group; an error for the whole response (KIP-88)
 3   the response tells the throttle time (KIP-124)
 4   the broker answers first and throttles afterwards (KIP-219)
 5   the leader epoch that was committed (KIP-320)
 6   flexible (KIP-482)
 7   a reader may insist on offsets no open transaction will change (KIP-447)
 8   several groups at once (KIP-709)
 9   a member of a KIP-848 group shows its id and epoch, and may be found stale
 10  topics go by id, no longer by name (KIP-848)
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
    # Null asks for all topics.
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
    # Then UNSTABLE_OFFSET_COMMIT is answered until the transaction has ended.
    require_stable: bool = boolean(since=7)


@part
class OffsetFetchResponsePartition:
    partition_index: Partition = int32(until=7)
    # -1 where nothing is committed, which is no error.
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
    # -1 where nothing is committed, which is no error.
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
