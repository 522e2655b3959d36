"""Fetch, API key 1: a consumer reads record batches from where it stands; followers do the same.

The broker may hold the request until enough bytes are there, so one poll is one long question.

Version notes:
 0-3  gone since Kafka 4.0 (KIP-896)
 4    the isolation level and the aborted transactions; batches of format 2 (KIP-98)
 5    where the log starts, both ways (KIP-107)
 6    KAFKA_STORAGE_ERROR may be answered (KIP-112)
 7    sessions: only what changed is asked for and answered (KIP-227)
 8    the broker answers first and throttles afterwards (KIP-219)
 9    the leader epoch the reader believes in, so that a stale reader is fenced (KIP-320)
 10   batches may be compressed with zstd (KIP-110)
 11   the reader's rack, and in return a nearer replica to read from (KIP-392)
 12   flexible (KIP-482); the last epoch read, and where the logs part ways (KIP-595)
 13   topics go by id, no longer by name (KIP-516)
 14   OFFSET_MOVED_TO_TIERED_STORAGE may be answered (KIP-405)
 15   a follower tells its epoch with its id, both in a tag (KIP-903)
 16   the response tells where new leaders are to be reached (KIP-951)
 17   a follower tells its log directory (KIP-853)
 18   a follower tells the high watermark it knows (KIP-1166)
"""

from kohort.types import BrokerId, Millis, Offset, Partition, ProducerId, Topic, Uuid
from kohort.wire.schema import (
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    part,
    records,
    string,
    struct,
    uuid,
)


@part
class ReplicaState:
    replica_id: BrokerId = int32(since=15, default=-1)
    replica_epoch: int = int64(since=15, default=-1)


@part
class FetchPartition:
    partition: Partition = int32()
    current_leader_epoch: int = int32(since=9, default=-1, ignorable=True)
    fetch_offset: Offset = int64()
    last_fetched_epoch: int = int32(since=12, default=-1)
    # A follower's; consumers leave it at -1.
    log_start_offset: Offset = int64(since=5, default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: Uuid = uuid(since=17, tag=0, ignorable=True)
    # -1 is a follower that knows none; the largest int64, a sender that knows no such field.
    high_watermark: Offset = int64(since=18, default=9223372036854775807, tag=1, ignorable=True)


@part
class FetchTopic:
    topic: Topic = string(until=12, ignorable=True)
    topic_id: Uuid = uuid(since=13, ignorable=True)
    partitions: tuple[FetchPartition, ...] = array(FetchPartition)


@part
class ForgottenTopic:
    topic: Topic = string(since=7, until=12, ignorable=True)
    topic_id: Uuid = uuid(since=13, ignorable=True)
    partitions: tuple[Partition, ...] = array("int32", since=7)


@message(api_key=1, versions=(4, 18), flexible_since=12)
class FetchRequest:
    cluster_id: str | None = string(
        since=12, nullable_since=12, default=None, tag=0, ignorable=True
    )
    # -1 is a consumer.
    replica_id: BrokerId = int32(until=14, default=-1)
    replica_state: ReplicaState = struct(ReplicaState, since=15, tag=1)
    max_wait_ms: Millis = int32()
    min_bytes: int = int32()
    # A first batch above the limits is sent all the same, so that no reader gets stuck (KIP-74).
    max_bytes: int = int32(since=3, default=2147483647, ignorable=True)
    # 0 reads everything, 1 stops at the last stable offset.
    isolation_level: int = int8(since=4, ignorable=True)
    session_id: int = int32(since=7, ignorable=True)
    # -1 stays outside sessions, 0 opens one; then it counts up.
    session_epoch: int = int32(since=7, default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...] = array(FetchTopic)
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11, ignorable=True)


@part
class EpochEndOffset:
    epoch: int = int32(since=12, default=-1)
    end_offset: Offset = int64(since=12, default=-1)


@part
class LeaderIdAndEpoch:
    leader_id: BrokerId = int32(since=12, default=-1)
    leader_epoch: int = int32(since=12, default=-1)


@part
class SnapshotId:
    end_offset: Offset = int64(default=-1)
    epoch: int = int32(default=-1)


@part
class AbortedTransaction:
    producer_id: ProducerId = int64(since=4)
    first_offset: Offset = int64(since=4)


@part
class PartitionData:
    partition_index: Partition = int32()
    error_code: int = int16()
    high_watermark: Offset = int64()
    last_stable_offset: Offset = int64(since=4, default=-1, ignorable=True)
    log_start_offset: Offset = int64(since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, since=12, tag=2)
    # Null unless the reader asked for committed records only.
    aborted_transactions: tuple[AbortedTransaction, ...] | None = array(
        AbortedTransaction, since=4, nullable_since=4, ignorable=True
    )
    # -1: keep reading here. Otherwise no records come, and the reader goes there.
    preferred_read_replica: BrokerId = int32(since=11, default=-1)
    records: bytes | None = records(nullable_since=0)


@part
class FetchableTopicResponse:
    topic: Topic = string(until=12, ignorable=True)
    topic_id: Uuid = uuid(since=13, ignorable=True)
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@part
class NodeEndpoint:
    node_id: BrokerId = int32(since=16)
    host: str = string(since=16)
    port: int = int32(since=16)
    rack: str | None = string(since=16, nullable_since=16, default=None)


@message(api_key=1, versions=(4, 18), flexible_since=12)
class FetchResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    error_code: int = int16(since=7, ignorable=True)
    session_id: int = int32(since=7)
    responses: tuple[FetchableTopicResponse, ...] = array(FetchableTopicResponse)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, since=16, tag=0)
