"""Writes batches to the target exactly once, as one idempotent producer for all runs.

The producer id is in the migration state, and the sequence number of a batch is the number of
records copied before it. So the target rejects duplicates of any run, however late they arrive.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import ClusterUnreachable, error_name
from kohort.admin.migration.cluster_reader import ClusterReader
from kohort.admin.migration.migration_types import MigrationStopped
from kohort.admin.migration.rebatch import SEQUENCES
from kohort.admin.router import PartialResponse
from kohort.types import (
    ErrorCode,
    Millis,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.batch_header import split

_ACKS_ALL: Final = -1
_ACKS_TIMEOUT_MS: Final = Millis(30_000)

_RETRIABLE: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    )
)
"""The same request may succeed later."""

_SEQUENCE_CONFLICT: Final = frozenset(
    (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    )
)
"""The target has more or fewer of our batches than expected."""


class SequenceConflict(Exception):
    """A batch of an earlier run arrived late. The target must be read again."""

    def __init__(self, partition: TopicPartition, reason: str) -> None:
        super().__init__(f"{partition.topic}:{partition.partition}: {reason}")


class IdempotentWriter:
    def __init__(self, cluster: Cluster, stall_timeout_ms: Millis) -> None:
        self._router = cluster.router
        self._stall_timeout_ms = stall_timeout_ms

    def new_producer(self) -> tuple[ProducerId, ProducerEpoch]:
        body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=Millis(-1))
        result = self._router.send_with_retries(
            body, lambda response: response.error_code, _RETRIABLE, self._stall_timeout_ms
        )
        if result.error_code != ErrorCode.NONE:
            raise MigrationStopped(
                f"the target assigned no producer id: {error_name(result.error_code)}"
            )
        return result.producer_id, result.producer_epoch

    def write(self, batches: Mapping[TopicPartition, bytes]) -> dict[TopicPartition, Offset]:
        """Write one batch per partition; returns the offset of its first record."""
        try:
            responses = self._router.send_to_leaders(
                batches,
                lambda led: _request({each: batches[each] for each in led}),
                _split_produce,
                retriable=_RETRIABLE,
                timeout_ms=self._stall_timeout_ms,
            )
        except ClusterUnreachable as error:
            topic, number = min(batches)
            raise MigrationStopped(f"cannot write to {topic}:{number}: {error}") from None
        return {partition: _base_offset(partition, each) for partition, each in responses.items()}


def _request(batches: Mapping[TopicPartition, bytes]) -> ProduceRequest:
    by_topic: defaultdict[Any, list[PartitionProduceData]] = defaultdict(list)
    for (topic, number), batch in batches.items():
        by_topic[topic].append(PartitionProduceData(index=number, records=batch))
    return ProduceRequest(
        acks=_ACKS_ALL,
        timeout_ms=_ACKS_TIMEOUT_MS,
        topic_data=tuple(
            TopicProduceData(name=topic, partition_data=tuple(data))
            for topic, data in by_topic.items()
        ),
    )


def _split_produce(response: Any) -> Iterator[tuple[TopicPartition, int, PartitionProduceResponse]]:
    for topic in response.responses:
        for result in topic.partition_responses:
            yield TopicPartition(topic.name, result.index), result.error_code, result


def _base_offset(
    partition: TopicPartition, response: PartialResponse[PartitionProduceResponse]
) -> Offset:
    result = response.body
    if result is not None and response.error_code == ErrorCode.NONE:
        return result.base_offset
    reason = (result.error_message if result is not None else None) or error_name(
        response.error_code
    )
    if response.error_code in _SEQUENCE_CONFLICT:
        raise SequenceConflict(partition, reason)
    where = f"{partition.topic}:{partition.partition}"
    raise MigrationStopped(f"the target rejected a batch for {where}: {reason}")


def find_written(
    reader: ClusterReader, producer_id: ProducerId, starts: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, dict[int, tuple[int, Offset]]]:
    """Our batches in the target: sequence number to (record count, offset)."""
    ends = reader.ends(starts)
    found: dict[TopicPartition, dict[int, tuple[int, Offset]]] = {each: {} for each in starts}
    for fetched in reader.read(starts, ends):
        for _, header in split(fetched.content, truncated_ok=True):
            if header.producer_id == producer_id and header.base_offset >= fetched.first:
                where = found[fetched.partition]
                where[header.base_sequence] = (header.record_count, header.base_offset)
    return found


def sequence_of(copied: int) -> int:
    return copied % SEQUENCES
