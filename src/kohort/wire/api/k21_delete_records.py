"""DeleteRecords, API key 21: deletes all records before an offset (KIP-107).

A group whose committed offset is deleted gets OFFSET_OUT_OF_RANGE when it fetches.

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  flexible (KIP-482)
"""

from kohort.types import Millis, Offset, Partition, Topic
from kohort.wire.schema import array, int16, int32, int64, message, part, string


@part
class DeleteRecordsPartition:
    partition_index: Partition = int32()
    # -1 for the high watermark.
    offset: Offset = int64()


@part
class DeleteRecordsTopic:
    name: Topic = string()
    partitions: tuple[DeleteRecordsPartition, ...] = array(DeleteRecordsPartition)


@message(api_key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsRequest:
    topics: tuple[DeleteRecordsTopic, ...] = array(DeleteRecordsTopic)
    timeout_ms: Millis = int32()


@part
class DeleteRecordsPartitionResult:
    partition_index: Partition = int32()
    # -1 with an error.
    low_watermark: Offset = int64()
    error_code: int = int16()


@part
class DeleteRecordsTopicResult:
    name: Topic = string()
    partitions: tuple[DeleteRecordsPartitionResult, ...] = array(DeleteRecordsPartitionResult)


@message(api_key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsResponse:
    throttle_time_ms: Millis = int32()
    topics: tuple[DeleteRecordsTopicResult, ...] = array(DeleteRecordsTopicResult)
