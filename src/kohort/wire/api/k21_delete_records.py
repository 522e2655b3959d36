"""DeleteRecords, API key 21: everything before an offset is given up, and the log starts there.

A group whose committed offset lies before it will find OFFSET_OUT_OF_RANGE (KIP-107).

Version notes:
 1  the broker answers first and throttles afterwards (KIP-219)
 2  flexible (KIP-482)
"""

from kohort.types import Millis, Offset, Partition, Topic
from kohort.wire.schema import array, int16, int32, int64, message, part, string


@part
class DeleteRecordsPartition:
    partition_index: Partition = int32()
    # -1 stands for the high watermark: everything that could be read.
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
    # -1 beside an error.
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
