"""Records for display: the same as those of the consumer, with bounded memory."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.record_decoder import (
    DECOMPRESSED_BYTES_MAX,
    HEADER_NAME_BYTES_MAX,
    HEADERS_MAX,
    SHOWN_BYTES,
    DecodedRecord,
    decode_records,
    decompress,
)
from kohort.types import Millis, Offset
from kohort.wire.batch import Header, NewBatch, NewRecord, decode, encode
from kohort.wire.batch_header import BatchHeader, peek
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage, TooLarge

MEGABYTE = 1024 * 1024


def decoded(batch: bytes, first: int = 0) -> list[DecodedRecord]:
    header = peek(batch)
    return list(decode_records(decompress(batch, 0, header), header, Offset(first)))


def new_record(**fields: object) -> NewRecord:
    given = {"key": None, "value": None, "timestamp": Millis(5), **fields}
    return NewRecord(**given)  # type: ignore[arg-type]  # the fields of a record


TEXTS = st.none() | st.text("abc\n\u00e9", max_size=20).map(str.encode)
HEADERS = st.builds(Header, key=st.text(max_size=5), value=TEXTS)
RECORDS = st.builds(
    NewRecord,
    key=TEXTS,
    value=TEXTS,
    timestamp=st.integers(0, 2**40).map(Millis),
    headers=st.lists(HEADERS, max_size=3).map(tuple),
)


@given(
    records=st.lists(RECORDS, min_size=1, max_size=5),
    codec=st.sampled_from(Codec),
    first=st.integers(5, 12),
)
def test_records_are_those_of_the_full_decoder(
    records: list[NewRecord], codec: Codec, first: int
) -> None:
    batch = encode(NewBatch(records=tuple(records), codec=codec, base_offset=Offset(7)))

    shown = decoded(batch, first)

    expected = [each for each in decode(batch).records if each.offset >= first]
    assert [each.offset for each in shown] == [each.offset for each in expected]
    assert [each.timestamp_ms for each in shown] == [each.timestamp for each in expected]
    for mine, theirs in zip(shown, expected, strict=True):
        fields = (mine.key, mine.value, *(each for _, each in mine.headers))
        contents = (theirs.key, theirs.value, *(each.value for each in theirs.headers))
        assert [None if each is None else each.text.encode() for each in fields] == list(contents)
        assert [name for name, _ in mine.headers] == [each.key for each in theirs.headers]


@given(data=st.binary(max_size=60), count=st.integers(0, 5), first=st.integers(0, 5))
def test_any_bytes_are_records_or_malformed(data: bytes, count: int, first: int) -> None:
    header = header_with(count)

    try:
        shown = list(decode_records(data, header, Offset(first)))
    except MalformedMessage:
        return
    assert len(shown) <= count


def header_with(record_count: int) -> BatchHeader:
    batch = encode(NewBatch(records=(new_record(),) * max(1, record_count)))
    return peek(batch)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_with_a_huge_expansion_is_too_large(codec: Codec) -> None:
    batch = encode(NewBatch(records=(new_record(value=bytes(32 * MEGABYTE)),), codec=codec))
    assert len(batch) < 2 * MEGABYTE

    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decoded(batch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 3 * DECOMPRESSED_BYTES_MAX


def test_long_fields_and_many_headers_are_truncated() -> None:
    many = [Header(key="", value=None)] * 100_000
    record = new_record(
        key=b"k" * MEGABYTE,
        value=bytes(MEGABYTE),
        headers=(Header(key="n" * MEGABYTE, value=bytes(MEGABYTE)), *many),
    )
    batch = encode(NewBatch(records=(record,), codec=Codec.ZSTD))

    tracemalloc.start()
    try:
        (shown,) = decoded(batch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert shown.key is not None
    assert (shown.key.text, shown.key.size, shown.key.is_cut) == ("k" * 2048, MEGABYTE, True)
    assert shown.value is not None
    assert (shown.value.is_text, shown.value.size) == (False, MEGABYTE)
    assert len(shown.headers) == HEADERS_MAX
    assert len(shown.headers[0][0]) == HEADER_NAME_BYTES_MAX
    assert peak < 10 * MEGABYTE


def test_a_truncated_character_does_not_make_text_binary() -> None:
    batch = encode(NewBatch(records=(new_record(value="x\u20ac".encode() * SHOWN_BYTES),)))

    (shown,) = decoded(batch)

    assert shown.value is not None
    assert shown.value.is_text
    assert set(shown.value.text) == {"x", "\u20ac"}
