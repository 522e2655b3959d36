"""The compiled inner loops: they find record batches and the fields of every record in a buffer.

They write positions into arrays; they copy no bytes and create no objects. They reject any batch
that looks wrong, and `kohort.wire.batch` then decodes it to report the reason.
"""

from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

START, END, COUNT, BASE_OFFSET, LAST_DELTA, BASE_TIME, APPEND_TIME = range(7)
"""The columns of a batch. The append time is -1 if each record has its own timestamp."""
BATCH_COLUMNS: Final = 7

ATTRIBUTES, PRODUCER_ID, POSITION = range(7, 10)
"""Additional columns of `walk`. The position is that of the batch header."""
WALK_COLUMNS: Final = 10

OFFSET, TIME, KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_AT, HEADERS, RECORD_END = range(9)
"""The rows of the record array. A record is a column, so that each row is contiguous."""
RECORD_ROWS: Final = 9

_SEVEN: Final = np.uint64(0x7F)
_MORE: Final = np.uint64(0x80)
_STEP: Final = np.uint64(7)
_ONE: Final = np.uint64(1)
_SHIFT_MAX: Final = np.uint64(63)

_HEADER_BYTES: Final = 61
_RECORD_BYTES_MIN: Final = 7
_LOG_APPEND_TIME: Final = 0x08
_OFFSET_MAX: Final = np.int64(2**63 - 1)

_CRC_START: Final = np.uint64(0xFFFFFFFF)
_BYTE: Final = np.uint64(0xFF)
_EIGHT: Final = np.uint64(8)


def _crc_tables() -> NDArray[np.uint64]:
    """Slicing-by-8 tables for CRC-32C: eight bytes are processed per step."""
    one = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        one = np.where(one & _ONE, (one >> _ONE) ^ np.uint64(0x82F63B78), one >> _ONE)
    tables = [one]
    for _ in range(7):
        tables.append((tables[-1] >> _EIGHT) ^ one[tables[-1] & _BYTE])
    return np.stack(tables)


_CRC: Final = _crc_tables()


@njit(cache=True, nogil=True, inline="always")
def _varint(buf: Any, pos: Any, end: Any) -> Any:
    """The varint at pos and the position after it; position -1 if it does not end before `end`."""
    number = np.uint64(0)
    shift = np.uint64(0)
    while True:
        if pos >= end or shift > _SHIFT_MAX:
            return np.int64(0), np.int64(-1)
        byte = np.uint64(buf[pos])
        pos += 1
        number |= (byte & _SEVEN) << shift
        if byte < _MORE:
            break
        shift += _STEP
    return np.int64(number >> _ONE) ^ -np.int64(number & _ONE), pos


@njit(cache=True, nogil=True)
def scan(  # noqa: C901  # one function, because the compiler optimises it as a whole
    buf: Any, batches: Any, first: Any, stop: Any, records: Any
) -> Any:
    """Describe the records with offsets from `first` up to `stop`; returns their count.

    For a malformed batch with index i it returns -1 - i.
    """
    n = 0
    for index in range(batches.shape[0]):
        pos, end = batches[index, START], batches[index, END]
        base, base_time = batches[index, BASE_OFFSET], batches[index, BASE_TIME]
        append_time = batches[index, APPEND_TIME]
        for _ in range(batches[index, COUNT]):
            size, pos = _varint(buf, pos, end)
            record_end = pos + size
            if pos < 0 or size < 6 or record_end > end:
                return -1 - index
            time_delta, pos = _varint(buf, pos + 1, record_end)
            if pos < 0:
                return -1 - index
            delta, pos = _varint(buf, pos, record_end)
            if pos < 0 or delta < 0 or delta > batches[index, LAST_DELTA]:
                return -1 - index
            key_size, key_at = _varint(buf, pos, record_end)
            if key_at < 0 or key_size < -1 or key_size > record_end - key_at:
                return -1 - index
            value_size, value_at = _varint(buf, key_at + max(key_size, 0), record_end)
            if value_at < 0 or value_size < -1 or value_size > record_end - value_at:
                return -1 - index
            headers, headers_at = _varint(buf, value_at + max(value_size, 0), record_end)
            if headers_at < 0 or headers < 0 or headers > (record_end - headers_at) // 2:
                return -1 - index
            if headers == 0 and headers_at != record_end:
                return -1 - index
            pos = record_end
            offset = base + delta
            if first <= offset < stop:
                records[OFFSET, n] = offset
                records[TIME, n] = base_time + time_delta if append_time < 0 else append_time
                records[KEY_AT, n] = key_at
                records[KEY_SIZE, n] = key_size
                records[VALUE_AT, n] = value_at
                records[VALUE_SIZE, n] = value_size
                records[HEADERS_AT, n] = headers_at
                records[HEADERS, n] = headers
                records[RECORD_END, n] = record_end
                n += 1
        if pos != end:
            return -1 - index
    return n


@njit(cache=True, nogil=True)
def scan_headers(buf: Any, records: Any, count: Any, found: Any) -> Any:
    """Describe the headers of these records in rows KEY_AT to VALUE_SIZE; returns their count.

    For a record with index i whose headers are malformed it returns -1 - i.
    """
    n = 0
    for index in range(count):
        pos, end = records[HEADERS_AT, index], records[RECORD_END, index]
        for _ in range(records[HEADERS, index]):
            key_size, key_at = _varint(buf, pos, end)
            if key_at < 0 or key_size < 0 or key_size > end - key_at:
                return -1 - index
            value_size, value_at = _varint(buf, key_at + key_size, end)
            if value_at < 0 or value_size < -1 or value_size > end - value_at:
                return -1 - index
            found[KEY_AT - KEY_AT, n] = key_at
            found[KEY_SIZE - KEY_AT, n] = key_size
            found[VALUE_AT - KEY_AT, n] = value_at
            found[VALUE_SIZE - KEY_AT, n] = value_size
            n += 1
            pos = value_at + max(value_size, 0)
        if records[HEADERS, index] and pos != end:
            return -1 - index
    return n


@njit(cache=True, nogil=True, inline="always")
def read_int(buf: Any, pos: Any, size: Any) -> Any:
    """A signed big-endian integer of `size` bytes."""
    number = np.int64(np.int8(buf[pos]))
    for index in range(1, size):
        number = (number << 8) | np.int64(buf[pos + index])
    return number


@njit(cache=True, nogil=True)
def crc32c(buf: Any, start: Any, end: Any) -> Any:
    crc = _CRC_START
    pos = start
    while pos + 8 <= end:
        crc ^= (
            np.uint64(buf[pos])
            | np.uint64(buf[pos + 1]) << np.uint64(8)
            | np.uint64(buf[pos + 2]) << np.uint64(16)
            | np.uint64(buf[pos + 3]) << np.uint64(24)
        )
        crc = (
            _CRC[7, crc & _BYTE]
            ^ _CRC[6, (crc >> np.uint64(8)) & _BYTE]
            ^ _CRC[5, (crc >> np.uint64(16)) & _BYTE]
            ^ _CRC[4, crc >> np.uint64(24)]
            ^ _CRC[3, buf[pos + 4]]
            ^ _CRC[2, buf[pos + 5]]
            ^ _CRC[1, buf[pos + 6]]
            ^ _CRC[0, buf[pos + 7]]
        )
        pos += 8
    while pos < end:
        crc = (crc >> _EIGHT) ^ _CRC[0, (crc ^ np.uint64(buf[pos])) & _BYTE]
        pos += 1
    return np.int64(crc ^ _CRC_START)


@njit(cache=True, nogil=True)
def _valid_size(buf: Any, pos: Any, checks_crc: Any) -> Any:
    """The size of the batch at pos; -1 if it is incomplete or malformed."""
    left = buf.shape[0] - pos
    if left < _HEADER_BYTES or buf[pos + 16] != 2:
        return np.int64(-1)
    size = 12 + read_int(buf, pos + 8, 4)
    if size < _HEADER_BYTES or size > left:
        return np.int64(-1)
    codec = read_int(buf, pos + 21, 2) & 7
    last_delta = read_int(buf, pos + 23, 4)
    count = read_int(buf, pos + 57, 4)
    if codec > 4 or last_delta < 0 or count < 0 or count > last_delta + 1:
        return np.int64(-1)
    if codec == 0 and count * _RECORD_BYTES_MIN > size - _HEADER_BYTES:
        return np.int64(-1)
    if read_int(buf, pos, 8) > _OFFSET_MAX - last_delta:
        return np.int64(-1)
    if checks_crc:
        stored = read_int(buf, pos + 17, 4) & 0xFFFFFFFF
        if crc32c(buf, pos + 21, pos + size) != stored:
            return np.int64(-1)
    return size


@njit(cache=True, nogil=True)
def walk(buf: Any, batches: Any, checks_crc: Any) -> Any:
    """Describe consecutive batches, one row each; returns their count and the end position.

    Stops at the first incomplete or malformed batch, or when all rows are used.
    """
    n = 0
    pos = np.int64(0)
    while n < batches.shape[0]:
        size = _valid_size(buf, pos, checks_crc)
        if size < 0:
            break
        attributes = read_int(buf, pos + 21, 2)
        batches[n, START] = pos + _HEADER_BYTES
        batches[n, END] = pos + size
        batches[n, COUNT] = read_int(buf, pos + 57, 4)
        batches[n, BASE_OFFSET] = read_int(buf, pos, 8)
        batches[n, LAST_DELTA] = read_int(buf, pos + 23, 4)
        batches[n, BASE_TIME] = read_int(buf, pos + 27, 8)
        batches[n, APPEND_TIME] = -1
        if attributes & _LOG_APPEND_TIME:
            batches[n, APPEND_TIME] = read_int(buf, pos + 35, 8)
        batches[n, ATTRIBUTES] = attributes
        batches[n, PRODUCER_ID] = read_int(buf, pos + 43, 8)
        batches[n, POSITION] = pos
        n += 1
        pos += size
    return n, pos


@njit(cache=True, nogil=True)
def find_valid(buf: Any, start: Any) -> Any:
    """The position of the first valid batch at or after `start`; -1 if there is none."""
    for pos in range(start, buf.shape[0] - _HEADER_BYTES + 1):
        if buf[pos + 16] == 2 and _valid_size(buf, pos, checks_crc=True) > 0:
            return np.int64(pos)
    return np.int64(-1)
