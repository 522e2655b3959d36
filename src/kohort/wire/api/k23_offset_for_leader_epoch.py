"""OffsetForLeaderEpoch, API key 23: the end offset of a leader epoch, to detect truncation.

After a leader change a consumer checks whether the records it has read still exist (KIP-320).

Version notes:
 0-1  removed in Kafka 4.0 (KIP-896)
 2    the leader epoch that the client knows, to fence outdated ones (KIP-320); the throttle time
 3    the replica id of the sender (KIP-392)
 4    flexible (KIP-482)
"""

from kohort.types import BrokerId, Millis, Offset, Partition, Topic
from kohort.wire.schema import array, int16, int32, int64, message, part, string


@part
class OffsetForLeaderPartition:
    partition: Partition = int32()
    current_leader_epoch: int = int32(since=2, default=-1, ignorable=True)
    leader_epoch: int = int32()


@part
class OffsetForLeaderTopic:
    topic: Topic = string()
    partitions: tuple[OffsetForLeaderPartition, ...] = array(OffsetForLeaderPartition)


@message(api_key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochRequest:
    # -1 for consumers. The default -2 is a debugging consumer, which may read beyond the high
    # watermark.
    replica_id: BrokerId = int32(since=3, default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...] = array(OffsetForLeaderTopic)


@part
class EpochEndOffset:
    # Unlike in other APIs, the error comes before the partition.
    error_code: int = int16()
    partition: Partition = int32()
    leader_epoch: int = int32(since=1, default=-1, ignorable=True)
    # -1 with epoch -1 if the epoch is unknown.
    end_offset: Offset = int64(default=-1)


@part
class OffsetForLeaderTopicResult:
    topic: Topic = string()
    partitions: tuple[EpochEndOffset, ...] = array(EpochEndOffset)


@message(api_key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: Millis = int32(since=2, ignorable=True)
    topics: tuple[OffsetForLeaderTopicResult, ...] = array(OffsetForLeaderTopicResult)
