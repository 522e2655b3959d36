"""Fetch, API key 1: consumers and followers read record batches from an offset on.

The broker may delay the response until enough bytes are available (long polling).

Version notes:
 0-3  removed in Kafka 4.0 (KIP-896)
 4    the isolation level and the aborted transactions; record batches of magic 2 (KIP-98)
 5    the log start offset in request and response (KIP-107)
 6    the error KAFKA_STORAGE_ERROR (KIP-112)
 7    fetch sessions: request and response contain only changes (KIP-227)
 8    the broker responds before it throttles (KIP-219)
 9    the leader epoch that the reader knows, so that outdated readers are fenced (KIP-320)
 10   zstd compression (KIP-110)
 11   the reader's rack, and a preferred read replica in the response (KIP-392)
 12   flexible (KIP-482); the last fetched epoch, and the epoch where the logs diverge (KIP-595)
 13   topic ids instead of names (KIP-516)
 14   the error OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
 15   the id and the epoch of a follower, in a tagged field (KIP-903)
 16   the response has the addresses of new leaders (KIP-951)
 17   the log directory id of a follower (KIP-853)
 18   the high watermark that a follower knows (KIP-1166)
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
    # Set by followers; -1 for consumers.
    log_start_offset: Offset = int64(since=5, default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: Uuid = uuid(since=17, tag=0, ignorable=True)
    # -1 if the follower knows none; the maximum int64 if the sender does not support this field.
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
    # -1 for consumers.
    replica_id: BrokerId = int32(until=14, default=-1)
    replica_state: ReplicaState = struct(ReplicaState, since=15, tag=1)
    max_wait_ms: Millis = int32()
    min_bytes: int = int32()
    # A first batch above the limit is sent as well, so that consumers make progress (KIP-74).
    max_bytes: int = int32(since=3, default=2147483647, ignorable=True)
    # 0 is read_uncommitted, 1 is read_committed.
    isolation_level: int = int8(since=4, ignorable=True)
    session_id: int = int32(since=7, ignorable=True)
    # -1 for no session, 0 to open one; then incremented with each request.
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
    # Null under read_uncommitted.
    aborted_transactions: tuple[AbortedTransaction, ...] | None = array(
        AbortedTransaction, since=4, nullable_since=4, ignorable=True
    )
    # -1 to continue with this broker. Otherwise there are no records, and the consumer switches.
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
