"""Produce: appends batches to their partitions unchanged and returns their offsets.

The handler checks the request; the log checks the batches.
"""

from collections.abc import Generator
from typing import Final

from kohort.log.batch_validator import read_header
from kohort.log.errors import InvalidBatch, InvalidRecords, RequestRejected, StorageError
from kohort.log.partition import PartitionLog
from kohort.node.broker import Broker
from kohort.node.request import (
    ITEMS_PER_SLICE,
    NO_RESPONSE,
    AfterSync,
    Disconnect,
    EncodedResponse,
    Request,
    SlicedWork,
)
from kohort.node.topics import ResolvedTopic, is_internal
from kohort.types import ErrorCode, Millis, Offset, Partition
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

_ACKS_NONE, _ACKS_LEADER, _ACKS_ALL = 0, 1, -1

_FLAGS_AT: Final = ATTRIBUTES_AT + 1
"""The lower of the two bytes of the batch attributes; the other one is unused."""

_ZSTD_SINCE: Final = 7

_CHECKED_BEFORE_LOG: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""Errors that Kafka returns without the log start offset."""


def handle(broker: Broker, request: Request, now: Millis) -> SlicedWork:
    body: ProduceRequest = request.body
    # Such a client may disconnect as soon as it has sent the request.
    request.must_finish = body.acks == _ACKS_NONE
    written: list[int] = []
    topics = []
    count = 0
    for requested in body.topic_data:
        if not requested.partition_data:
            continue
        topic = broker.topics.resolve(
            requested.name, requested.topic_id, by_id=request.version >= 13
        )
        # DEVIATION: a partition that appears twice is written twice. Kafka writes only the last
        # one and ignores the others.
        responses = []
        for data in requested.partition_data:
            appending = _append(broker, request, topic, data, now, written=written)
            responses.append((yield from appending))
            count += 1
            if not count % ITEMS_PER_SLICE:
                now = yield
        topics.append(
            TopicProduceResponse(
                name=requested.name,
                topic_id=requested.topic_id,
                partition_responses=tuple(responses),
            )
        )
    response = ProduceResponse(responses=tuple(topics))
    if body.acks == _ACKS_NONE:
        return _respond_without_acks(response)
    if body.acks == _ACKS_ALL and written:
        return AfterSync(response)
    return response


def _append(
    broker: Broker,
    request: Request,
    topic: ResolvedTopic,
    data: PartitionProduceData,
    now: Millis,
    *,
    written: list[int],
) -> Generator[None, Millis, PartitionProduceResponse]:
    batch = data.records or b""
    log: PartitionLog | None = None
    try:
        _check(topic, data.index, batch, request.body.acks, request.version)
        log = broker.topics.catalog.partition(topic.name, data.index)
        assert log is not None, f"{topic.name}-{data.index} does not exist"
        header = yield from log.validate(batch, now)
        _check_unchanged(broker, topic, data.index, log)
        appended = log.append_validated(batch, header, now)
    except (RequestRejected, StorageError) as error:
        broker.storage_errors.note(error)
        return _refuse(data.index, error, log)
    # A duplicate batch counts too: its first copy may still wait for a sync.
    written.append(data.index)
    if not appended.is_duplicate:
        broker.purgatory.appended(topic.name, Partition(data.index), len(batch))
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.append_ms,
        log_start_offset=appended.start_offset,
    )


def _check_unchanged(broker: Broker, topic: ResolvedTopic, index: int, log: PartitionLog) -> None:
    """Another request may have deleted the topic while a large batch was validated."""
    if broker.topics.catalog.partition(topic.name, index) is not log:
        raise RequestRejected(topic.missing_error, "the topic was deleted meanwhile")


def _refuse(
    index: int, error: RequestRejected | StorageError, log: PartitionLog | None
) -> PartitionProduceResponse:
    """The log start offset is returned only for errors that the log found."""
    start_offset = Offset(-1)
    is_before = isinstance(error, InvalidBatch) or error.code in _CHECKED_BEFORE_LOG
    if log is not None and not is_before:
        start_offset = log.start_offset
    faults = error.faults if isinstance(error, InvalidRecords) else {}
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=Offset(-1),
        log_start_offset=start_offset,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=error)
            for at, error in faults.items()
        ),
        # DEVIATION: Kafka sends a message only for invalid records. Kohort sends one with every
        # error, as in other responses.
        error_message=error.reason or None,
    )


def _check(topic: ResolvedTopic, index: int, batch: bytes, acks: int, version: int) -> None:
    error = topic.find_error(Partition(index))
    if error is not None:
        raise RequestRejected(error, "")
    if not batch:
        # DEVIATION: Kafka sends no response at all if the records are null.
        reason = "the records of a partition must be one batch, but they are null"
        raise InvalidBatch(ErrorCode.INVALID_RECORD, reason)
    flags = batch[_FLAGS_AT] if len(batch) > _FLAGS_AT else 0
    if version < _ZSTD_SINCE and flags & CODEC_MASK == Codec.ZSTD:
        reason = f"zstd requires produce version {_ZSTD_SINCE}, but this is version {version}"
        raise RequestRejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason)
    if flags & TRANSACTIONAL_FLAG:
        # DEVIATION: transactions are not supported. This is Kafka's error for a producer without
        # the permission to use them; clients treat it as fatal.
        reason = "transactions are not supported"
        raise RequestRejected(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, reason)
    if acks not in (_ACKS_NONE, _ACKS_LEADER, _ACKS_ALL):
        read_header(batch)
        reason = f"acks is {acks}; it must be 0, 1 or -1"
        raise RequestRejected(ErrorCode.INVALID_REQUIRED_ACKS, reason)
    if is_internal(topic.name):
        reason = f"{topic.name} is internal; only the broker writes to it"
        raise RequestRejected(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def _respond_without_acks(response: ProduceResponse) -> EncodedResponse | Disconnect:
    """A producer with acks=0 gets no response; it notices an error when its connection closes."""
    errors = [
        f"{topic.name}-{partition.index} {ErrorCode(partition.error_code).name}"
        for topic in response.responses
        for partition in topic.partition_responses
        if partition.error_code
    ]
    if errors:
        return Disconnect(f"produce with acks=0 failed: {', '.join(errors)}")
    return NO_RESPONSE
