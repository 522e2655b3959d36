"""DescribeTopicPartitions, API key 75: partitions in pages, with eligible leaders (KIP-966).

Metadata returns nearly the same in one response; this API is for large topics.

Version notes:
 0  the only version so far; flexible from the start (KIP-482)
"""

from kohort.types import BrokerId, Millis, Partition, Topic, Uuid
from kohort.wire.schema import array, boolean, int16, int32, message, part, string, struct, uuid


@part
class TopicRequest:
    name: Topic = string()


@part
class Cursor:
    topic_name: Topic = string()
    partition_index: Partition = int32()


@message(api_key=75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsRequest:
    topics: tuple[TopicRequest, ...] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    # Null for the first page, then next_cursor of the last response.
    cursor: Cursor | None = struct(Cursor, nullable_since=0, default=None)


@part
class DescribeTopicPartitionsResponsePartition:
    error_code: int = int16()
    partition_index: Partition = int32()
    leader_id: BrokerId = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: tuple[BrokerId, ...] = array("int32")
    isr_nodes: tuple[BrokerId, ...] = array("int32")
    eligible_leader_replicas: tuple[BrokerId, ...] | None = array(
        "int32", nullable_since=0, default=None
    )
    last_known_elr: tuple[BrokerId, ...] | None = array("int32", nullable_since=0, default=None)
    offline_replicas: tuple[BrokerId, ...] = array("int32", ignorable=True)


@part
class DescribeTopicPartitionsResponseTopic:
    error_code: int = int16()
    name: Topic | None = string(nullable_since=0)
    topic_id: Uuid = uuid(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = array(
        DescribeTopicPartitionsResponsePartition
    )
    # The minimum int32 if not requested.
    topic_authorized_operations: int = int32(default=-2147483648)


@message(api_key=75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: Millis = int32(ignorable=True)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = array(
        DescribeTopicPartitionsResponseTopic
    )
    # Null on the last page.
    next_cursor: Cursor | None = struct(Cursor, nullable_since=0, default=None)
