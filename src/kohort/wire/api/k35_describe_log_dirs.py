"""DescribeLogDirs, API key 35: the log directories of a broker and partition sizes (KIP-113).

Tools and consoles use it for the size of topics.

Version notes:
 0  removed in Kafka 4.0 (KIP-896)
 1  the broker responds before it throttles (KIP-219)
 2  flexible (KIP-482)
 3  an error for the whole response (KIP-784)
 4  total and usable bytes of the volume (KIP-827)
 5  directories that accept no new partitions (KIP-1066)
"""

from kohort.types import Millis, Offset, Partition, Topic
from kohort.wire.schema import array, boolean, int16, int32, int64, message, part, string


@part
class DescribableLogDirTopic:
    topic: Topic = string()
    partitions: tuple[Partition, ...] = array("int32")


@message(api_key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsRequest:
    # None requests all.
    topics: tuple[DescribableLogDirTopic, ...] | None = array(
        DescribableLogDirTopic, nullable_since=0
    )


@part
class DescribeLogDirsPartition:
    partition_index: Partition = int32()
    partition_size: int = int64()
    # The lag of a replica behind its leader, or of a future replica behind the current one.
    offset_lag: Offset = int64()
    is_future_key: bool = boolean()


@part
class DescribeLogDirsTopic:
    name: Topic = string()
    partitions: tuple[DescribeLogDirsPartition, ...] = array(DescribeLogDirsPartition)


@part
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: tuple[DescribeLogDirsTopic, ...] = array(DescribeLogDirsTopic)
    # -1 if unknown.
    total_bytes: int = int64(since=4, default=-1)
    usable_bytes: int = int64(since=4, default=-1)
    is_cordoned: bool = boolean(since=5)


@message(api_key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsResponse:
    throttle_time_ms: Millis = int32()
    error_code: int = int16(since=3)
    results: tuple[DescribeLogDirsResult, ...] = array(DescribeLogDirsResult)
