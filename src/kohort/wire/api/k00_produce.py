"""Produce, API key 0: a producer appends record batches to partitions led by the broker it asks.

No group sends it, but all that a group reads has come this way.

Version notes:
 0-2  gone since Kafka 4.0 (KIP-896); brokers announce them all the same, or older librdkafka would
      find no common version
 3    a transactional id; records travel in batches of format 2 (KIP-98)
 4    KAFKA_STORAGE_ERROR may be answered (KIP-112)
 5    the response tells where the log starts, to tell lost sequences from expired ones (KIP-192)
 6    the broker answers first and throttles afterwards (KIP-219)
 7    batches may be compressed with zstd (KIP-110)
 8    the response names the records that spoiled their batch, and why (KIP-467)
 9    flexible (KIP-482)
 10   the response tells the new leader where the one asked has stepped down (KIP-951)
 11   TRANSACTION_ABORTABLE may be answered (KIP-890)
 12   producing inside a transaction also adds the partition to it (KIP-890)
 13   topics go by id, no longer by name (KIP-516)
"""

from kohort.types import BrokerId, Millis, Offset, Topic, TransactionalId, Uuid
from kohort.wire.schema import (
    array,
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
class PartitionProduceData:
    index: int = int32()
    records: bytes | None = records(nullable_since=0)


@part
class TopicProduceData:
    name: Topic = string(until=12, ignorable=True)
    topic_id: Uuid = uuid(since=13, ignorable=True)
    partition_data: tuple[PartitionProduceData, ...] = array(PartitionProduceData)


@message(api_key=0, versions=(3, 13), flexible_since=9)
class ProduceRequest:
    transactional_id: TransactionalId | None = string(since=3, nullable_since=3, default=None)
    # 0 asks for no answer, and gets none: not even an empty frame. -1 waits for all in sync.
    acks: int = int16()
    timeout_ms: Millis = int32()
    topic_data: tuple[TopicProduceData, ...] = array(TopicProduceData)


@part
class BatchIndexAndErrorMessage:
    batch_index: int = int32(since=8)
    batch_index_error_message: str | None = string(since=8, nullable_since=8, default=None)


@part
class LeaderIdAndEpoch:
    leader_id: BrokerId = int32(since=10, default=-1)
    leader_epoch: int = int32(since=10, default=-1)


@part
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: Offset = int64()
    # -1 where the topic keeps the producer's own timestamps.
    log_append_time_ms: Millis = int64(since=2, default=-1, ignorable=True)
    log_start_offset: Offset = int64(since=5, default=-1, ignorable=True)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = array(
        BatchIndexAndErrorMessage, since=8, ignorable=True
    )
    error_message: str | None = string(since=8, nullable_since=8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, since=10, tag=0)


@part
class TopicProduceResponse:
    name: Topic = string(until=12, ignorable=True)
    topic_id: Uuid = uuid(since=13, ignorable=True)
    partition_responses: tuple[PartitionProduceResponse, ...] = array(PartitionProduceResponse)


@part
class NodeEndpoint:
    node_id: BrokerId = int32(since=10)
    host: str = string(since=10)
    port: int = int32(since=10)
    rack: str | None = string(since=10, nullable_since=10, default=None)


@message(api_key=0, versions=(3, 13), flexible_since=9)
class ProduceResponse:
    responses: tuple[TopicProduceResponse, ...] = array(TopicProduceResponse)
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, since=10, tag=0)
