"""The compiled inner loop: where in a buffer the parts of every record are.

It walks over the varints and writes positions down; it copies nothing and builds no object. What
it doubts it refuses, and the wire's own careful reader is asked what is wrong.
"""

from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

START, END, COUNT, BASE_OFFSET, LAST_DELTA, BASE_TIME, APPEND_TIME = range(7)
"""The columns that describe a batch; the append time is -1 where each record has its own."""
BATCH_COLUMNS: Final = 7

OFFSET, TIME, KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_AT, HEADERS, RECORD_END = range(9)
"""The rows that describe the records: a record is a column, so that each row is an array."""
RECORD_ROWS: Final = 9

_SEVEN: Final = np.uint64(0x7F)
_MORE: Final = np.uint64(0x80)
_STEP: Final = np.uint64(7)
_ONE: Final = np.uint64(1)
_SHIFT_MAX: Final = np.uint64(63)


@njit(cache=True, nogil=True, inline="always")
def _varint(buf: Any, pos: Any, end: Any) -> Any:
    """The number at pos and the position behind it, which is -1 where it does not end in time."""
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
def scan(  # noqa: C901  # one straight line: the compiler makes the most of it
    buf: Any, batches: Any, first: Any, stop: Any, records: Any
) -> Any:
    """Describe the records with offsets from first up to stop; returns how many.

    Of a batch that is not what it claims, the index is returned, as -1 less than its negative.
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
    """Describe the headers of these records by KEY_AT .. VALUE_SIZE less KEY_AT; returns how many.

    Of a record whose headers do not fill it, the index is returned, as -1 less than its negative.
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
