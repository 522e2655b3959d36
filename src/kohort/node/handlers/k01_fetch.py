"""Fetch: partitions that cannot be found are answered here, the others are read or waited for."""

from collections.abc import Iterator
from typing import Final

from kohort.log.limits import LEADER_EPOCH
from kohort.node.broker import Broker
from kohort.node.fetches import Fetch, Read, Wanted
from kohort.node.request import Request
from kohort.node.topics import Named
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
"""No answer is larger, whatever was asked for, but for a single batch; protects memory from clients
that do not read, and others from waiting for this one. Kafka allows 55 MB, which it need not hold.
"""

_WAIT_MS_MAX: Final = Millis(300_000)
"""Nobody waits longer, whatever was asked for; protects memory. No more can be set in librdkafka.
"""


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: FetchRequest = request.body
    # DEVIATION: there are no fetch sessions (KIP-227). A client that asks for one is told that it
    # got none, as by a Kafka broker without room for more, and names all partitions every time.
    if body.session_epoch not in (_FINAL, _INITIAL):
        request.answer(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        return
    by_id = request.version >= 13
    named = [broker.topics.name(t.topic, t.topic_id, by_id=by_id) for t in body.topics]
    bytes_max = min(body.max_bytes, _BYTES_MAX)

    def deliver(reads: list[Read]) -> None:
        request.answer(_respond(body, named, iter(reads), request.version))

    fetch = Fetch(
        wanted=tuple(_wanted(body, named)),
        bytes_min=min(body.min_bytes, bytes_max),
        bytes_max=bytes_max,
        wait_ms=min(body.max_wait_ms, _WAIT_MS_MAX),
        is_committed_only=body.isolation_level == _READ_COMMITTED,
        deliver=deliver,
    )
    number = broker.fetches.submit(fetch, now)
    if number is not None:
        request.on_abandoned = lambda: broker.fetches.withdraw(number)


def _wanted(body: FetchRequest, named: list[Named]) -> Iterator[Wanted]:
    for asked, topic in zip(body.topics, named, strict=True):
        for partition in asked.partitions:
            if topic.find_fault(partition.partition) is None:
                yield Wanted(
                    topic=topic.name,
                    partition=partition.partition,
                    offset=partition.fetch_offset,
                    bytes_max=partition.partition_max_bytes,
                    leader_epoch=partition.current_leader_epoch,
                    last_epoch=partition.last_fetched_epoch,
                )


def _respond(
    body: FetchRequest, named: list[Named], reads: Iterator[Read], version: int
) -> FetchResponse:
    is_committed_only = body.isolation_level == _READ_COMMITTED
    topics = []
    for asked, topic in zip(body.topics, named, strict=True):
        partitions = []
        # DEVIATION: a partition that is named twice is answered twice. Kafka reads only where it
        # is named last.
        for partition in asked.partitions:
            fault = topic.find_fault(partition.partition)
            if fault is not None:
                partitions.append(_refuse(partition.partition, fault))
                continue
            read = next(reads)
            partitions.append(
                _partition(partition.partition, read, version, is_committed_only=is_committed_only)
            )
        if partitions:
            topics.append(
                FetchableTopicResponse(
                    topic=asked.topic, topic_id=asked.topic_id, partitions=tuple(partitions)
                )
            )
    return FetchResponse(responses=tuple(topics))


def _refuse(partition: Partition, fault: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=partition, error_code=fault, high_watermark=Offset(-1))


def _partition(
    partition: Partition, read: Read, version: int, *, is_committed_only: bool
) -> PartitionData:
    error = read.error
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        # Older clients do not know it; this one makes them ask again.
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


def _diverging(read: Read) -> EpochEndOffset:
    if not read.has_diverged:
        return EpochEndOffset()
    return EpochEndOffset(epoch=LEADER_EPOCH, end_offset=read.end_offset)


def _aborted(read: Read) -> tuple[AbortedTransaction, ...]:
    return tuple(
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in read.aborted
    )
