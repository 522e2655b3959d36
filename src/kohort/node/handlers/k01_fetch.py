"""Fetch: refuses unknown partitions; the purgatory reads the others, or waits for records."""

from collections.abc import Iterator
from typing import Final

from kohort.log.limits import LEADER_EPOCH
from kohort.node.broker import Broker
from kohort.node.fetch_purgatory import FetchParams, LogReadResult, PartitionFetch
from kohort.node.request import PARKED, Parked, Request
from kohort.node.topics import ResolvedTopic
from kohort.types import ErrorCode, Millis, Offset, Partition
from kohort.wire.api.k01_fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

_FINAL, _INITIAL = -1, 0
_READ_COMMITTED: Final = 1

_BYTES_MAX: Final = 8 * 1024 * 1024
"""The largest response, unless one batch is larger; protects memory from clients that do not read,
and other clients from waiting. Kafka allows 55 MB, but does not hold the response in memory.
"""

_WAIT_MS_MAX: Final = Millis(300_000)
"""The longest wait; protects memory. It is also the maximum of librdkafka."""


def handle(broker: Broker, request: Request, _: Millis) -> object:
    body: FetchRequest = request.body
    # DEVIATION: there are no fetch sessions (KIP-227). The response declines the session, like a
    # Kafka broker whose session cache is full, so the client sends all partitions every time.
    if body.session_epoch not in (_FINAL, _INITIAL):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    by_id = request.version >= 13
    resolved = [broker.topics.resolve(t.topic, t.topic_id, by_id=by_id) for t in body.topics]
    request.context = resolved
    bytes_max = min(body.max_bytes, _BYTES_MAX)
    fetch = FetchParams(
        partitions=tuple(_partition_fetches(body, resolved)),
        bytes_min=min(body.min_bytes, bytes_max),
        bytes_max=bytes_max,
        wait_ms=min(body.max_wait_ms, _WAIT_MS_MAX),
        is_committed_only=body.isolation_level == _READ_COMMITTED,
    )
    result = broker.purgatory.submit(fetch, Parked(request, _respond))
    if isinstance(result, int):
        request.fetch_number = result
        return PARKED
    return _respond(request, result)


def _partition_fetches(
    body: FetchRequest, resolved: list[ResolvedTopic]
) -> Iterator[PartitionFetch]:
    for requested, topic in zip(body.topics, resolved, strict=True):
        for partition in requested.partitions:
            if topic.find_error(partition.partition) is None:
                yield PartitionFetch(
                    topic=topic.name,
                    partition=partition.partition,
                    offset=partition.fetch_offset,
                    bytes_max=partition.partition_max_bytes,
                    leader_epoch=partition.current_leader_epoch,
                    last_epoch=partition.last_fetched_epoch,
                )


def _respond(request: Request, result: list[LogReadResult]) -> FetchResponse:
    body: FetchRequest = request.body
    resolved: list[ResolvedTopic] = request.context
    reads = iter(result)
    is_committed_only = body.isolation_level == _READ_COMMITTED
    topics = []
    for requested, topic in zip(body.topics, resolved, strict=True):
        partitions = []
        # DEVIATION: a partition that appears twice is read twice. Kafka reads only the last one.
        for partition in requested.partitions:
            error = topic.find_error(partition.partition)
            if error is not None:
                partitions.append(_refuse(partition.partition, error))
                continue
            read = next(reads)
            partitions.append(
                _partition(
                    partition.partition, read, request.version, is_committed_only=is_committed_only
                )
            )
        if partitions:
            topics.append(
                FetchableTopicResponse(
                    topic=requested.topic, topic_id=requested.topic_id, partitions=tuple(partitions)
                )
            )
    return FetchResponse(responses=tuple(topics))


def _refuse(partition: Partition, error: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=partition, error_code=error, high_watermark=Offset(-1))


def _partition(
    partition: Partition, read: LogReadResult, version: int, *, is_committed_only: bool
) -> PartitionData:
    error = read.error
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        # Older clients do not know this error; NOT_LEADER_OR_FOLLOWER makes them retry.
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=read.end_offset,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.start_offset,
        diverging_epoch=_diverging(read),
        aborted_transactions=_aborted(read) if is_committed_only and not error else None,
        records=read.records,
    )


def _diverging(read: LogReadResult) -> EpochEndOffset:
    if not read.has_diverged:
        return EpochEndOffset()
    return EpochEndOffset(epoch=LEADER_EPOCH, end_offset=read.end_offset)


def _aborted(read: LogReadResult) -> tuple[AbortedTransaction, ...]:
    return tuple(
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in read.aborted
    )
