"""ListOffsets, API key 2: the offset of a moment, or of the beginning or end of a partition.

A consumer asks when a group has no committed offset, when it seeks, and to measure its lag.

Version notes:
 0   gone since Kafka 4.0 (KIP-896); it answered with many offsets, where segments begin
 1   one offset per partition, with its timestamp (KIP-79)
 2   the isolation level (KIP-98); the response tells the throttle time (KIP-124)
 3   the broker answers first and throttles afterwards (KIP-219)
 4   leader epochs, the believed one and the record's (KIP-320)
 5   OFFSET_NOT_AVAILABLE while a new leader is not sure of its high watermark (KIP-207)
 6   flexible (KIP-482)
 7   timestamp -3 (KIP-734)
 8   timestamp -4 (KIP-405)
 9   timestamp -5 (KIP-1005)
 10  how long to wait for remote storage (KIP-1075)
 11  timestamp -6 (KIP-1023)
"""

from kohort.types import BrokerId, Millis, Offset, Partition, Topic
from kohort.wire.schema import array, int8, int16, int32, int64, message, part, string


@part
class ListOffsetsPartition:
    partition_index: Partition = int32()
    current_leader_epoch: int = int32(since=4, default=-1, ignorable=True)
    # -1 the end, -2 the beginning, -3 the newest timestamp, -4 the oldest offset on local disk,
    # -5 the newest in remote storage, -6 the oldest not yet uploaded. A moment finds the first
    # record that is not older.
    timestamp: Millis = int64()


@part
class ListOffsetsTopic:
    name: Topic = string()
    partitions: tuple[ListOffsetsPartition, ...] = array(ListOffsetsPartition)


@message(api_key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest:
    # -1 is a consumer. Kafka declares no default, so leaving it out claims to be broker 0.
    replica_id: BrokerId = int32()
    isolation_level: int = int8(since=2)
    topics: tuple[ListOffsetsTopic, ...] = array(ListOffsetsTopic)
    timeout_ms: Millis = int32(since=10, ignorable=True)


@part
class ListOffsetsPartitionResponse:
    partition_index: Partition = int32()
    error_code: int = int16()
    # -1 where the answer is a position and not a record.
    timestamp: Millis = int64(since=1, default=-1)
    # -1 where no record is as young as the moment asked for.
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
