"""What a client must have got right before its batch is kept.

The header and the checksum are looked at always, the records only where a setting depends on them.
"""

from typing import Final, NoReturn

from kohort.log.errors import NotOneBatch, RecordsRefused, Refused
from kohort.log.settings import TopicSettings
from kohort.types import ErrorCode, Millis
from kohort.wire.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Record,
    TimestampType,
    iter_records,
    peek,
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
from kohort.wire.errors import MalformedMessage

_ANY_AGE: Final = 2**63 - 1


def admit(batch: bytes, settings: TopicSettings, now: Millis) -> BatchHeader:
    """The header of a batch that may be kept; raises Refused for any other."""
    # DEVIATION: Kafka looks into every record of every batch. Here a batch whose records are
    # garbage under a valid checksum is kept as it came, and its header is believed about its
    # latest timestamp: to look would cost more than all the rest.
    header = read_header(batch)
    check_size(header, settings)
    if header.size_in_bytes != len(batch):
        # DEVIATION: Kafka drops what follows a batch and is not another whole one.
        reason = f"{len(batch)} bytes are not one batch of {header.size_in_bytes}"
        raise NotOneBatch(ErrorCode.INVALID_RECORD, reason)
    try:
        verify_crc(batch, 0, header)
    except MalformedMessage as error:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    _check_header(header)
    if _must_see_records(header, settings, now):
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


def read_header(batch: bytes) -> BatchHeader:
    """The header, if these bytes can be a batch at all."""
    try:
        return peek(batch)
    except MalformedMessage as error:
        if error.field in ("magic", "header", "batch_length"):
            # A format of old is refused as such, one nobody has heard of is taken for damage.
            is_short = len(batch) <= MAGIC_AT
            is_old = error.field != "batch_length" and (is_short or batch[MAGIC_AT] <= MAGIC)
            code = ErrorCode.INVALID_RECORD if is_old else ErrorCode.CORRUPT_MESSAGE
            raise NotOneBatch(code, str(error)) from error
        # DEVIATION: over a codec that does not exist Kafka fails as over a fault of its own.
        is_damaged = len(batch) > HEADER_BYTES and checksum(
            memoryview(batch)[ATTRIBUTES_AT:]
        ) != int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT])
        # Damage on the way is worth another try; what was sent so is not.
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


def _must_see_records(header: BatchHeader, settings: TopicSettings, now: Millis) -> bool:
    return (
        settings.is_compacted
        or settings.message_timestamp_before_max_ms != _ANY_AGE
        or header.timestamp_type is TimestampType.LOG_APPEND_TIME
        or _is_early(header.max_timestamp, settings, now)
    )


def _is_early(timestamp: Millis, settings: TopicSettings, now: Millis) -> bool:
    is_create_time = settings.message_timestamp_type is TimestampType.CREATE_TIME
    return is_create_time and timestamp - now > settings.message_timestamp_after_max_ms


def _check_records(batch: bytes, header: BatchHeader, settings: TopicSettings, now: Millis) -> None:
    """Every record that is at fault is told of; the fault of the first is that of the batch."""
    code, faults = ErrorCode.NONE, dict[int, str]()
    try:
        for record in iter_records(batch, check_crc=False):
            fault, reason = _find_fault(record, header, settings, now)
            if fault is not ErrorCode.NONE:
                code = code or fault
                faults[record.offset - header.base_offset] = reason
    except MalformedMessage as error:
        _refuse(str(error))
    if faults:
        raise RecordsRefused(code, faults)
    if _is_early(header.max_timestamp, settings, now):
        reason = f"the batch says {header.max_timestamp}, which none of its records does"
        raise Refused(ErrorCode.INVALID_TIMESTAMP, reason)


def _find_fault(
    record: Record, header: BatchHeader, settings: TopicSettings, now: Millis
) -> tuple[ErrorCode, str]:
    if settings.is_compacted and record.key is None:
        return ErrorCode.INVALID_RECORD, "it has no key, and the topic is compacted"
    is_create_time = settings.message_timestamp_type is TimestampType.CREATE_TIME
    if is_create_time and record.timestamp != NO_TIMESTAMP:
        age_ms, limit = now - record.timestamp, settings.message_timestamp_before_max_ms
        if age_ms > limit:
            reason = f"it is {age_ms} ms old, message.timestamp.before.max.ms is {limit}"
            return ErrorCode.INVALID_TIMESTAMP, reason
        if _is_early(record.timestamp, settings, now):
            limit = settings.message_timestamp_after_max_ms
            reason = f"it is {-age_ms} ms ahead, message.timestamp.after.max.ms is {limit}"
            return ErrorCode.INVALID_TIMESTAMP, reason
    elif header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        reason = "its batch says LogAppendTime, which is not for producers to say"
        return ErrorCode.INVALID_TIMESTAMP, reason
    return ErrorCode.NONE, ""


def _refuse(reason: str) -> NoReturn:
    raise Refused(ErrorCode.INVALID_RECORD, reason)
