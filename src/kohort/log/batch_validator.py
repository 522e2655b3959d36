"""Validation of batches from clients (Kafka: LogValidator).

The header, the checksum and the structure of all records are always checked. Records are decoded
only if a topic setting requires it. A compressed batch of a few bytes can have millions of records,
so all of it is done in steps.
"""

from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any, Final, NoReturn

from kohort.log.errors import InvalidBatch, InvalidRecords, RequestRejected
from kohort.log.limits import Limits
from kohort.log.topic_config import TopicSettings
from kohort.types import ErrorCode, Millis
from kohort.wire.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    peek,
    read_body,
    verify_crc,
)
from kohort.wire.batch_header import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    checksum,
)
from kohort.wire.errors import MalformedMessage, TooLarge
from kohort.wire.record_checker import check_end, check_records
from kohort.wire.records import read_records

_NO_AGE_LIMIT: Final = 2**63 - 1

_LIMITS: Final = Limits()

_RECORDS_PER_STEP: Final = 1_000
_DECODED_PER_STEP: Final = 250
"""Records that are checked, or decoded, in one step; less than a millisecond."""

_FAULTS_MAX: Final = 1_000
"""Invalid records that are reported; bounds the response."""


def validate_batch(batch: bytes, settings: TopicSettings, now: Millis) -> BatchHeader:
    """The header of a valid batch; raises RequestRejected for an invalid one."""
    steps = validate_in_steps(batch, settings, now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            header: BatchHeader = end.value
            return header


def validate_in_steps(
    batch: bytes,
    settings: TopicSettings,
    now: Millis,
    limits: Limits = _LIMITS,
) -> Generator[None, Any, BatchHeader]:
    """Like `validate_batch`; yields between the steps. Most batches take only one."""
    # DEVIATION: Kafka replaces the max timestamp in the header of a batch by that of its records.
    # Here it is trusted.
    header = read_header(batch)
    check_size(header, settings)
    if header.size_in_bytes != len(batch):
        # DEVIATION: Kafka drops trailing bytes that are not another whole batch.
        reason = f"{len(batch)} bytes, but the batch has {header.size_in_bytes}"
        raise InvalidBatch(ErrorCode.INVALID_RECORD, reason)
    try:
        verify_crc(batch, 0, header)
    except MalformedMessage as error:
        raise RequestRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    _check_header(header)
    try:
        body, position = batch, HEADER_BYTES
        if header.codec is not Codec.NONE:
            body, position = read_body(batch, header, limits.decompressed_bytes_max), 0
        count = header.record_count
        if count > limits.batch_records_max:
            # Producers split the batch and try again.
            reason = f"{count} records, the maximum is {limits.batch_records_max}"
            raise RequestRejected(ErrorCode.MESSAGE_TOO_LARGE, reason)
        if _must_decode_records(header, settings, now):
            yield from _decode_records(body[position:], header, settings, now)
        else:
            # DEVIATION: Kafka checks the offset deltas only of compressed records.
            for first in range(0, count, _RECORDS_PER_STEP):
                if first:
                    yield
                last = min(first + _RECORDS_PER_STEP, count)
                position = check_records(body, position, first, last)
            check_end(body, position)
    except TooLarge as error:
        raise RequestRejected(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except MalformedMessage as error:
        # DEVIATION: for records that cannot be decompressed Kafka returns UNKNOWN_SERVER_ERROR.
        _reject(str(error))
    return header


def check_size(header: BatchHeader, settings: TopicSettings) -> None:
    """Checked for trusted batches as well."""
    size = header.size_in_bytes
    if size > settings.max_message_bytes:
        reason = f"the batch has {size} bytes, max.message.bytes is {settings.max_message_bytes}"
        raise RequestRejected(ErrorCode.MESSAGE_TOO_LARGE, reason)
    if size > settings.segment_bytes:
        reason = f"the batch has {size} bytes, segment.bytes is {settings.segment_bytes}"
        raise RequestRejected(ErrorCode.RECORD_LIST_TOO_LARGE, reason)


def read_header(batch: bytes) -> BatchHeader:
    try:
        return peek(batch)
    except MalformedMessage as error:
        if error.field in ("magic", "header", "batch_length"):
            # An old message format gets INVALID_RECORD, an unknown one CORRUPT_MESSAGE.
            is_short = len(batch) <= MAGIC_AT
            is_old = error.field != "batch_length" and (is_short or batch[MAGIC_AT] <= MAGIC)
            code = ErrorCode.INVALID_RECORD if is_old else ErrorCode.CORRUPT_MESSAGE
            raise InvalidBatch(code, str(error)) from error
        # DEVIATION: for an unknown compression codec Kafka returns UNKNOWN_SERVER_ERROR.
        is_damaged = len(batch) > HEADER_BYTES and checksum(
            memoryview(batch)[ATTRIBUTES_AT:]
        ) != int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT])
        # Clients retry CORRUPT_MESSAGE, which helps only if the network damaged the batch.
        code = ErrorCode.CORRUPT_MESSAGE if is_damaged else ErrorCode.INVALID_RECORD
        raise RequestRejected(code, str(error)) from error


def _check_header(header: BatchHeader) -> None:
    if header.base_offset != 0:
        _reject(f"the base offset is {header.base_offset}, expected 0")
    if header.record_count != header.last_offset_delta + 1 or not header.record_count:
        _reject(f"{header.record_count} records for {header.last_offset_delta + 1} offsets")
    if header.is_control:
        _reject("clients must not write control batches")
    if header.producer_id != NO_PRODUCER_ID and (
        header.producer_epoch < 0 or header.base_sequence < 0
    ):
        _reject(f"producer {header.producer_id} has no epoch or no sequence number")


def _must_decode_records(header: BatchHeader, settings: TopicSettings, now: Millis) -> bool:
    return (
        settings.is_compacted
        or settings.message_timestamp_before_max_ms != _NO_AGE_LIMIT
        or header.timestamp_type is TimestampType.LOG_APPEND_TIME
        or _is_too_far_ahead(header.max_timestamp, settings, now)
    )


def _is_too_far_ahead(timestamp: Millis, settings: TopicSettings, now: Millis) -> bool:
    is_create_time = settings.message_timestamp_type is TimestampType.CREATE_TIME
    return is_create_time and timestamp - now > settings.message_timestamp_after_max_ms


def _decode_records(
    body: bytes, header: BatchHeader, settings: TopicSettings, now: Millis
) -> Generator[None, Any, None]:
    """Reports the invalid records, with the error code of the first one."""
    records: Iterator[Record] = read_records(body, header, message="RecordBatch", shift=0)
    code, faults = ErrorCode.NONE, dict[int, str]()
    index = 0
    while some := list(islice(records, _DECODED_PER_STEP)):
        for record in some:
            if record.offset - header.base_offset != index:
                _reject(f"record {index} has the offset delta {record.offset - header.base_offset}")
            fault, reason = _find_fault(record, header, settings, now)
            if fault is not ErrorCode.NONE and len(faults) < _FAULTS_MAX:
                code = code or fault
                faults[index] = reason
            index += 1
        if len(some) == _DECODED_PER_STEP:
            yield
    if faults:
        raise InvalidRecords(code, faults)
    if _is_too_far_ahead(header.max_timestamp, settings, now):
        reason = f"no record has the batch's max timestamp {header.max_timestamp}"
        raise RequestRejected(ErrorCode.INVALID_TIMESTAMP, reason)


def _find_fault(
    record: Record, header: BatchHeader, settings: TopicSettings, now: Millis
) -> tuple[ErrorCode, str]:
    if settings.is_compacted and record.key is None:
        return ErrorCode.INVALID_RECORD, "the topic is compacted and the record has no key"
    is_create_time = settings.message_timestamp_type is TimestampType.CREATE_TIME
    if is_create_time and record.timestamp != NO_TIMESTAMP:
        age_ms, limit = now - record.timestamp, settings.message_timestamp_before_max_ms
        if age_ms > limit:
            reason = f"the record is {age_ms} ms old, message.timestamp.before.max.ms is {limit}"
            return ErrorCode.INVALID_TIMESTAMP, reason
        if _is_too_far_ahead(record.timestamp, settings, now):
            limit = settings.message_timestamp_after_max_ms
            reason = (
                f"the timestamp is {-age_ms} ms in the future,"
                f" message.timestamp.after.max.ms is {limit}"
            )
            return ErrorCode.INVALID_TIMESTAMP, reason
    elif header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        reason = "producers must not set the timestamp type LogAppendTime"
        return ErrorCode.INVALID_TIMESTAMP, reason
    return ErrorCode.NONE, ""


def _reject(reason: str) -> NoReturn:
    raise RequestRejected(ErrorCode.INVALID_RECORD, reason)
