"""Produce: batches go to their partitions as they came, and the answer says where they are.

What a batch must be is for the log to say; what a request must be is checked here.
"""

from typing import Final

from kohort.log.errors import Refused, StorageError
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import Named, is_internal
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kohort.wire.batch_header import ATTRIBUTES_AT, CODEC_MASK, TRANSACTIONAL_FLAG
from kohort.wire.compression import Codec

_NOBODY, _LEADER, _ALL = 0, 1, -1

_FLAGS_AT: Final = ATTRIBUTES_AT + 1
"""All attributes that mean anything are in the second of their two bytes."""

_ZSTD_SINCE: Final = 7


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: ProduceRequest = request.body
    written: list[tuple[Topic, Partition, int]] = []
    topics = []
    for asked in body.topic_data:
        topic = broker.topics.name(asked.name, asked.topic_id, by_id=request.version >= 13)
        topics.append(
            TopicProduceResponse(
                name=asked.name,
                topic_id=asked.topic_id,
                partition_responses=tuple(
                    _append(broker, request, topic, data, now, written=written)
                    for data in asked.partition_data
                ),
            )
        )
    response = ProduceResponse(responses=tuple(topics))
    if body.acks == _NOBODY:
        _finish_unasked(request, response)
    elif body.acks == _ALL and written:
        broker.when_durable(lambda: request.answer(response))
    else:
        request.answer(response)
    for name, partition, size in written:
        broker.fetches.appended(name, partition, size)


def _append(
    broker: Broker,
    request: Request,
    topic: Named,
    data: PartitionProduceData,
    now: Millis,
    *,
    written: list[tuple[Topic, Partition, int]],
) -> PartitionProduceResponse:
    batch = data.records or b""
    try:
        _check(topic, data.index, batch, request.body.acks, request.version)
        log = broker.topics.catalog.partition(topic.name, Partition(data.index))
        assert log is not None, f"{topic.name}-{data.index} was there a moment ago"
        appended = log.append(batch, now)
    except (Refused, StorageError) as error:
        return PartitionProduceResponse(
            index=data.index,
            error_code=error.code,
            base_offset=Offset(-1),
            error_message=error.reason or None,
        )
    # A batch that came twice counts too: its first sender may still wait for the disk.
    written.append((topic.name, Partition(data.index), 0 if appended.is_duplicate else len(batch)))
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.append_ms,
        log_start_offset=appended.start_offset,
    )


def _check(topic: Named, index: int, batch: bytes, acks: int, version: int) -> None:
    fault = topic.find_fault(Partition(index))
    if fault is not None:
        raise Refused(fault, "")
    if not batch:
        raise Refused(ErrorCode.INVALID_RECORD, "a partition's data is one batch, and here is none")
    flags = batch[_FLAGS_AT] if len(batch) > _FLAGS_AT else 0
    if version < _ZSTD_SINCE and flags & CODEC_MASK == Codec.ZSTD:
        reason = f"zstd comes with version {_ZSTD_SINCE}, not with {version}"
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason)
    if flags & TRANSACTIONAL_FLAG:
        # DEVIATION: there are no transactions yet. It is what Kafka answers to a producer that
        # may not use them, and ends it at once.
        reason = "there are no transactions here"
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, reason)
    if acks not in (_NOBODY, _LEADER, _ALL):
        reason = f"acks is {acks}; it can be 0, 1 or -1"
        raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, reason)
    if is_internal(topic.name):
        reason = f"only this node writes to {topic.name}"
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def _finish_unasked(request: Request, response: ProduceResponse) -> None:
    """A producer that asked for no answer learns of an error only when its connection ends."""
    faults = [
        f"{topic.name}-{partition.index} {ErrorCode(partition.error_code).name}"
        for topic in response.responses
        for partition in topic.partition_responses
        if partition.error_code
    ]
    if faults:
        request.hang_up(f"not produced, and nobody asked: {', '.join(faults)}")
    else:
        request.answer_nothing()
