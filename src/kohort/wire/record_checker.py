"""Checks the records of a batch from a producer without decoding them.

Every record must have exactly its declared length, and the offset delta of its position in the
batch. A producer usually writes records of the same size: such a run has the same lengths at the
same distance, so a few comparisons of every n-th byte check all of it. Other records are read one
by one, which costs about ten times as much.
"""

from typing import Final, NoReturn

from kohort.wire.errors import MalformedMessage
from kohort.wire.records import find_record_fault
from kohort.wire.varint import continue_uvarint, continue_uvarlong, read_varint

_MESSAGE: Final = "RecordBatch"

_TOP_BIT: Final = bytes(0x80 & number for number in range(256))
"""A translation of bytes: only the bit that says whether a number goes on remains."""

_ONE_BYTE: Final = 64
_TWO_BYTES: Final = 8192
"""The first offset deltas that take two bytes, and three."""

_DELTAS: Final = (
    (bytes(range(0, 128, 2)),),
    (bytes(range(128, 256, 2)) * 127, b"".join(bytes([high]) * 64 for high in range(1, 128))),
)
"""The bytes of consecutive offset deltas that take one byte, and of those that take two."""

_TIMESTAMP_BYTES_MAX: Final = 9
"""Longer ones may exceed 64 bits, so they are read one by one."""

_RUN_MIN: Final = 8
_RUN_PAUSE: Final = 32
"""After a run of fewer records than the first, no run is looked for in as many as the second."""


def check_records(  # noqa: C901 - not split, because a call per number is too slow
    body: bytes, pos: int, first: int, last: int
) -> int:
    """Check the records from index `first` up to `last`, of which the first is at `pos`.

    Returns the position after them. Raises MalformedMessage."""
    index, start, next_run, before = first, pos, first, 0
    try:
        while index < last:
            start = pos
            length = body[pos]
            pos += 1
            if length > 127:
                if (n := body[pos]) < 128:
                    length += (n << 7) - 128
                    pos += 1
                else:
                    length, pos = continue_uvarint(body, pos, length)
            if length == before and index >= next_run:
                count, end = _skip_run(body, start, pos, length, index, last)
                if count < _RUN_MIN:
                    next_run = index + _RUN_PAUSE
                if count:
                    index, pos = index + count, end
                    continue
            before = length
            end = pos + (length >> 1)
            n = body[pos + 1]
            pos += 2
            if n > 127:
                n, pos = continue_uvarlong(body, pos, n)
            delta = body[pos]
            pos += 1
            if delta > 127:
                delta, pos = continue_uvarint(body, pos, delta)
            n = body[pos]
            pos += 1
            if n > 127:
                n, pos = continue_uvarint(body, pos, n)
            odd = length
            if n != 1:
                pos += n >> 1
                odd |= n
            n = body[pos]
            pos += 1
            if n > 127:
                n, pos = continue_uvarint(body, pos, n)
            if n != 1:
                pos += n >> 1
                odd |= n
            pos = _skip_headers(body, pos, end) if body[pos] else pos + 1
            if pos != end or delta != index + index or odd & 1:
                _reject()
            index += 1
    except (IndexError, ValueError):
        raise _explain(body, start, index) from None
    return pos


def check_end(body: bytes, pos: int) -> None:
    """Raises MalformedMessage if there is more after the last record of a batch."""
    if pos != len(body):
        reason = f"{len(body) - pos} bytes after the last record"
        raise MalformedMessage(_MESSAGE, "records", pos, reason)


def _skip_run(  # noqa: PLR0917 - a call with keywords is slower
    body: bytes, start: int, pos: int, length: int, index: int, last: int
) -> tuple[int, int]:
    """How many records from the one at `start` on have the same lengths, and the position after
    them; 0 if this one is not as expected. `pos` is the position after its length."""
    size = pos + (length >> 1) - start
    is_short = index < _ONE_BYTE
    count = min(last, _ONE_BYTE if is_short else _TWO_BYTES) - index
    count = min(count, (len(body) - start) // size)
    if count < 1 or length & 1:
        return 0, start
    delta_at = _skip_varint(body, pos + 1)
    if delta_at - pos > _TIMESTAMP_BYTES_MAX:
        return 0, start
    key_at = delta_at + (1 if is_short else 2)
    key_length, key_start = read_varint(body, key_at)
    value_at = key_start + max(0, key_length)
    value_length, value_start = read_varint(body, value_at)
    end = value_start + max(0, value_length)
    if key_length < -1 or value_length < -1 or end + 1 != start + size or body[end]:
        return 0, start
    # These bytes are the same in all records of the run: the lengths and the number of headers.
    for at in (*range(start, pos), *range(key_at, key_start), *range(value_at, value_start), end):
        column = body[at : start + count * size : size]
        count -= len(column.lstrip(column[:1]))
    # The timestamps take the same number of bytes.
    for at in range(pos + 1, delta_at):
        column = body[at : start + count * size : size].translate(_TOP_BIT)
        count -= len(column.lstrip(column[:1]))
    first_delta = index if is_short else index - _ONE_BYTE
    for at, deltas in enumerate(_DELTAS[not is_short], delta_at):
        column = body[at : start + count * size : size]
        if column != deltas[first_delta : first_delta + count]:
            return 0, start
    return count, start + count * size


def _skip_varint(body: bytes, pos: int) -> int:
    while body[pos] > 127:
        pos += 1
    return pos + 1


def _skip_headers(body: bytes, pos: int, end: int) -> int:
    count, pos = read_varint(body, pos)
    if not 0 <= count <= (end - pos) // 2:
        _reject()
    for _ in range(count):
        length, pos = read_varint(body, pos)
        if length < 0:
            _reject()
        body[pos : pos + length].decode()
        length, pos = read_varint(body, pos + length)
        if length < -1:
            _reject()
        pos += max(0, length)
    return pos


def _reject() -> NoReturn:
    raise ValueError


def _explain(body: bytes, start: int, index: int) -> MalformedMessage:
    field, position, reason = _find_wrong_delta(body, start, index) or find_record_fault(
        body, start, index
    )
    return MalformedMessage(_MESSAGE, f"records[{index}].{field}", position, reason)


def _find_wrong_delta(body: bytes, start: int, index: int) -> tuple[str, int, str] | None:
    try:
        _, pos = read_varint(body, start)
        at = _skip_varint(body, pos + 1)
        delta, _ = read_varint(body, at)
    except (IndexError, ValueError):
        return None
    if delta == index:
        return None
    return "offset_delta", at, f"{delta} instead of {index}"
