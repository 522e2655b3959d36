"""Produce, API key 0: a producer appends record batches to partitions of their leader.

Version notes:
 0-2  removed in Kafka 4.0 (KIP-896); brokers still list them in ApiVersions, because older
      librdkafka versions need that
 3    the transactional id; record batches of magic 2 (KIP-98)
 4    the error KAFKA_STORAGE_ERROR (KIP-112)
 5    the log start offset, to distinguish lost sequence numbers from expired ones (KIP-192)
 6    the broker responds before it throttles (KIP-219)
 7    zstd compression (KIP-110)
 8    the response lists the invalid records of a batch with the reasons (KIP-467)
 9    flexible (KIP-482)
 10   the response has the new leader if the leader has changed (KIP-951)
 11   the error TRANSACTION_ABORTABLE (KIP-890)
 12   produce in a transaction also adds the partition to it (KIP-890)
 13   topic ids instead of names (KIP-516)
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
    # 0 means that there is no response, not even an empty frame. -1 waits for all in-sync replicas.
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
    # -1 if the topic keeps the producer's timestamps.
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
