"""Fetch: refuses unknown partitions; the purgatory reads the others, or waits for records."""

from collections.abc import Generator, Iterator
from typing import Final

from kohort.log.limits import LEADER_EPOCH
from kohort.node.broker import Broker
from kohort.node.fetch_purgatory import FetchParams, LogReadResult, PartitionFetch
from kohort.node.request import (
    ITEMS_PER_SLICE,
    NAMED_PER_SLICE,
    PARKED,
    Parked,
    Request,
    SlicedWork,
)
from kohort.node.topics import ResolvedTopic
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.api.k01_fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
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


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: FetchRequest = request.body
    # DEVIATION: there are no fetch sessions (KIP-227). The response declines the session, like a
    # Kafka broker whose session cache is full, so the client sends all partitions every time.
    if body.session_epoch not in (_FINAL, _INITIAL):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    topics = yield from _requested_topics(broker, body, by_id=request.version >= 13)
    request.context = topics
    bytes_max = min(body.max_bytes, _BYTES_MAX)
    fetch = FetchParams(
        partitions=tuple(each for topic in topics for each in topic.fetches()),
        bytes_min=min(body.min_bytes, bytes_max),
        bytes_max=bytes_max,
        wait_ms=min(body.max_wait_ms, _WAIT_MS_MAX),
        is_committed_only=body.isolation_level == _READ_COMMITTED,
    )
    waiter = Parked(request, _respond)
    if len(fetch.partitions) <= ITEMS_PER_SLICE:
        result = broker.purgatory.submit(fetch, waiter)
    else:
        reads = yield from broker.purgatory.read_in_slices(fetch)
        result = broker.purgatory.submit_read(fetch, reads, waiter)
    if isinstance(result, int):
        request.fetch_number = result
        return PARKED
    return _respond(request, result)


class _RequestedTopic:
    """A topic of a request, and its partitions in the order of their first appearance."""

    __slots__ = ("partitions", "requested", "resolved")

    def __init__(self, requested: FetchTopic, resolved: ResolvedTopic) -> None:
        self.requested = requested
        self.resolved = resolved
        self.partitions: dict[Partition, FetchPartition] = {}

    def fetches(self) -> Iterator[PartitionFetch]:
        topic = self.resolved
        for partition in self.partitions.values():
            if topic.find_error(partition.partition) is None:
                yield PartitionFetch(
                    topic=topic.name,
                    partition=partition.partition,
                    offset=partition.fetch_offset,
                    bytes_max=partition.partition_max_bytes,
                    leader_epoch=partition.current_leader_epoch,
                    last_epoch=partition.last_fetched_epoch,
                )


def _requested_topics(
    broker: Broker, body: FetchRequest, *, by_id: bool
) -> Generator[None, Millis, list[_RequestedTopic]]:
    """As in Kafka, the last entry for a partition counts."""
    topics: dict[tuple[Topic, Uuid], _RequestedTopic] = {}
    count = 0
    for requested in body.topics:
        topic = topics.get((requested.topic, requested.topic_id))
        if topic is None:
            resolved = broker.topics.resolve(requested.topic, requested.topic_id, by_id=by_id)
            topic = _RequestedTopic(requested, resolved)
            topics[requested.topic, requested.topic_id] = topic
        for partition in requested.partitions:
            topic.partitions[partition.partition] = partition
            count += 1
            if not count % NAMED_PER_SLICE:
                yield
    return list(topics.values())


def _respond(request: Request, result: list[LogReadResult]) -> FetchResponse:
    body: FetchRequest = request.body
    requested_topics: list[_RequestedTopic] = request.context
    reads = iter(result)
    is_committed_only = body.isolation_level == _READ_COMMITTED
    topics = []
    for topic in requested_topics:
        partitions = []
        for partition in topic.partitions:
            error = topic.resolved.find_error(partition)
            if error is not None:
                partitions.append(_refuse(partition, error))
                continue
            read = next(reads)
            partitions.append(
                _partition(partition, read, request.version, is_committed_only=is_committed_only)
            )
        if partitions:
            topics.append(
                FetchableTopicResponse(
                    topic=topic.requested.topic,
                    topic_id=topic.requested.topic_id,
                    partitions=tuple(partitions),
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
