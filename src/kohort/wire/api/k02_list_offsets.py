"""ListOffsets, API key 2: the offset for a timestamp, or of the start or end of a partition.

Consumers use it without a committed offset, to seek, and to compute the lag.

Version notes:
 0   removed in Kafka 4.0 (KIP-896); it returned a list of segment base offsets
 1   one offset per partition, with its timestamp (KIP-79)
 2   the isolation level (KIP-98); the response has the throttle time (KIP-124)
 3   the broker responds before it throttles (KIP-219)
 4   leader epochs: the one that the client knows, and that of the record (KIP-320)
 5   the error OFFSET_NOT_AVAILABLE while a new leader does not know its high watermark (KIP-207)
 6   flexible (KIP-482)
 7   timestamp -3 (KIP-734)
 8   timestamp -4 (KIP-405)
 9   timestamp -5 (KIP-1005)
 10  the timeout for remote storage (KIP-1075)
 11  timestamp -6 (KIP-1023)
"""

from kohort.types import BrokerId, Millis, Offset, Partition, Topic
from kohort.wire.schema import array, int8, int16, int32, int64, message, part, string


@part
class ListOffsetsPartition:
    partition_index: Partition = int32()
    current_leader_epoch: int = int32(since=4, default=-1, ignorable=True)
    # -1 the end, -2 the start, -3 the maximum timestamp, -4 the earliest offset on local disk,
    # -5 the latest in remote storage, -6 the earliest not yet uploaded. For a timestamp: the first
    # record at or after it.
    timestamp: Millis = int64()


@part
class ListOffsetsTopic:
    name: Topic = string()
    partitions: tuple[ListOffsetsPartition, ...] = array(ListOffsetsPartition)


@message(api_key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest:
    # -1 for consumers. Kafka declares no default, so it must be set: 0 is broker 0.
    replica_id: BrokerId = int32()
    isolation_level: int = int8(since=2)
    topics: tuple[ListOffsetsTopic, ...] = array(ListOffsetsTopic)
    timeout_ms: Millis = int32(since=10, ignorable=True)


@part
class ListOffsetsPartitionResponse:
    partition_index: Partition = int32()
    error_code: int = int16()
    # -1 if the result is a position and not a record.
    timestamp: Millis = int64(since=1, default=-1)
    # -1 if no record is at or after the timestamp.
    offset: Offset = int64(since=1, default=-1)
    leader_epoch: int = int32(since=4, default=-1)


@part
class ListOffsetsTopicResponse:
    name: Topic = string()
    partitions: tuple[ListOffsetsPartitionResponse, ...] = array(ListOffsetsPartitionResponse)


@message(api_key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsResponse:
    throttle_time_ms: Millis = int32(since=2, ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...] = array(ListOffsetsTopicResponse)
