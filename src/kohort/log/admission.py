"""What a client must have got right before its batch is kept.

The header and the checksum are looked at always, the records only where a setting depends on them.

DEVIATION: Kafka looks into every record of every batch. Here a batch whose records are garbage
under a valid checksum is kept as it came, and its header is believed about its latest timestamp.
"""

from typing import Final, NoReturn

from kohort.log.errors import Refused
from kohort.log.settings import TopicSettings
from kohort.types import ErrorCode, Millis
from kohort.wire.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    iter_records,
    peek,
    verify_crc,
)
from kohort.wire.batch_header import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, checksum
from kohort.wire.errors import MalformedMessage

_ANY_AGE: Final = 2**63 - 1


def admit(batch: bytes, settings: TopicSettings, now: Millis) -> BatchHeader:
    """The header of a batch that may be kept; raises Refused for any other."""
    header = _read_header(batch)
    check_size(header, settings)
    if header.size_in_bytes != len(batch):
        _refuse(f"{len(batch)} bytes are not one batch of {header.size_in_bytes}")
    try:
        verify_crc(batch, 0, header)
    except MalformedMessage as error:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    _check_header(header)
    _check_timestamp(header, settings, now)
    if settings.is_compacted or settings.message_timestamp_before_max_ms != _ANY_AGE:
        _check_records(batch, header, settings, now)
    return header


def check_size(header: BatchHeader, settings: TopicSettings) -> None:
    """Holds for our own batches as well."""
    size = header.size_in_bytes
    if size > settings.max_message_bytes:
        reason = f"a batch of {size} bytes, max.message.bytes is {settings.max_message_bytes}"
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE, reason)
    if size > settings.segment_bytes:
        reason = f"a batch of {size} bytes, segment.bytes is {settings.segment_bytes}"
        raise Refused(ErrorCode.RECORD_LIST_TOO_LARGE, reason)


def _read_header(batch: bytes) -> BatchHeader:
    try:
        return peek(batch)
    except MalformedMessage as error:
        # Damage on the way is worth another try; what was sent so is not.
        is_damaged = error.field == "batch_length" or (
            error.field != "magic"
            and len(batch) > HEADER_BYTES
            and checksum(memoryview(batch)[ATTRIBUTES_AT:])
            != int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT])
        )
        code = ErrorCode.CORRUPT_MESSAGE if is_damaged else ErrorCode.INVALID_RECORD
        raise Refused(code, str(error)) from error


def _check_header(header: BatchHeader) -> None:
    if header.base_offset != 0:
        _refuse(f"the base offset is {header.base_offset}, a producer's is 0")
    if header.record_count != header.last_offset_delta + 1 or not header.record_count:
        _refuse(f"{header.record_count} records in {header.last_offset_delta + 1} offsets")
    if header.is_control:
        _refuse("a control batch is not for clients to write")
    if header.producer_id != NO_PRODUCER_ID and (
        header.producer_epoch < 0 or header.base_sequence < 0
    ):
        _refuse(f"producer {header.producer_id} without an epoch or a sequence number")


def _check_timestamp(header: BatchHeader, settings: TopicSettings, now: Millis) -> None:
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        reason = "the batch says LogAppendTime, which is not for producers to say"
        raise Refused(ErrorCode.INVALID_TIMESTAMP, reason)
    if settings.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        return
    ahead_ms = header.max_timestamp - now
    if ahead_ms > settings.message_timestamp_after_max_ms:
        limit = settings.message_timestamp_after_max_ms
        reason = f"a record is {ahead_ms} ms ahead, message.timestamp.after.max.ms is {limit}"
        raise Refused(ErrorCode.INVALID_TIMESTAMP, reason)


def _check_records(batch: bytes, header: BatchHeader, settings: TopicSettings, now: Millis) -> None:
    is_create_time = settings.message_timestamp_type is TimestampType.CREATE_TIME
    limit = settings.message_timestamp_before_max_ms if is_create_time else _ANY_AGE
    try:
        for record in iter_records(batch, check_crc=False):
            at = record.offset - header.base_offset
            if settings.is_compacted and record.key is None:
                _refuse(f"record {at} has no key, and the topic is compacted")
            age_ms = now - record.timestamp
            if age_ms > limit and record.timestamp != NO_TIMESTAMP:
                reason = (
                    f"record {at} is {age_ms} ms old, message.timestamp.before.max.ms is {limit}"
                )
                raise Refused(ErrorCode.INVALID_TIMESTAMP, reason)
    except MalformedMessage as error:
        _refuse(str(error))


def _refuse(reason: str) -> NoReturn:
    raise Refused(ErrorCode.INVALID_RECORD, reason)
