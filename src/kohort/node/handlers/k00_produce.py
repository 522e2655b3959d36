"""Produce: batches go to their partitions as they came, and the answer says where they are.

What a batch must be is for the log to say; what a request must be is checked here.
"""

from typing import Final

from kohort.log.admission import read_header
from kohort.log.errors import NotOneBatch, RecordsRefused, Refused, StorageError
from kohort.log.partition import PartitionLog
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import Named, is_internal
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic
from kohort.wire.api.k00_produce import (
    BatchIndexAndErrorMessage,
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

_BEFORE_THE_LOG: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""What Kafka says of a batch without saying where its log begins."""


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: ProduceRequest = request.body
    written: list[tuple[Topic, Partition, int]] = []
    topics = []
    for asked in body.topic_data:
        if not asked.partition_data:
            continue
        topic = broker.topics.name(asked.name, asked.topic_id, by_id=request.version >= 13)
        topics.append(
            TopicProduceResponse(
                name=asked.name,
                topic_id=asked.topic_id,
                # DEVIATION: a partition that is named twice is written twice. Kafka writes only the
                # last, and says nothing of the others.
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
    log: PartitionLog | None = None
    try:
        _check(topic, data.index, batch, request.body.acks, request.version)
        log = broker.topics.catalog.partition(topic.name, Partition(data.index))
        assert log is not None, f"{topic.name}-{data.index} was there a moment ago"
        appended = log.append(batch, now)
    except (Refused, StorageError) as error:
        return _refuse(data.index, error, log)
    # A batch that came twice counts too: its first sender may still wait for the disk.
    written.append((topic.name, Partition(data.index), 0 if appended.is_duplicate else len(batch)))
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.append_ms,
        log_start_offset=appended.start_offset,
    )


def _refuse(
    index: int, error: Refused | StorageError, log: PartitionLog | None
) -> PartitionProduceResponse:
    """Where the log begins is told once a batch has got as far as the log."""
    start_offset = Offset(-1)
    is_before = isinstance(error, NotOneBatch) or error.code in _BEFORE_THE_LOG
    if log is not None and not is_before:
        start_offset = log.start_offset
    faults = error.faults if isinstance(error, RecordsRefused) else {}
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=Offset(-1),
        log_start_offset=start_offset,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=fault)
            for at, fault in faults.items()
        ),
        # DEVIATION: Kafka leaves it at the code unless single records are at fault. Here, as in
        # other answers, whatever is refused is refused with a reason.
        error_message=error.reason or None,
    )


def _check(topic: Named, index: int, batch: bytes, acks: int, version: int) -> None:
    fault = topic.find_fault(Partition(index))
    if fault is not None:
        raise Refused(fault, "")
    if not batch:
        # DEVIATION: Kafka never answers where there are no bytes at all, not even their number.
        reason = "a partition's data is one batch, and here is none"
        raise NotOneBatch(ErrorCode.INVALID_RECORD, reason)
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
        read_header(batch)
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
