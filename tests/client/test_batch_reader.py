"""The fast batch reader returns the same records as the full decoder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.fetch.consumer_records import BatchReader, ConsumerRecord
from kohort.types import Millis, Offset
from kohort.wire.batch import NewBatch, NewRecord, Record, decode, encode, encode_retained
from kohort.wire.batch_header import HEADER_BYTES, BatchHeader, assemble, peek
from kohort.wire.errors import MalformedMessage
from kohort.wire.records import Header
from tests.client.fetched_batches import HERE

texts = st.none() | st.binary(max_size=80) | st.binary(min_size=60, max_size=70)
headers = st.lists(
    st.builds(Header, key=st.text(max_size=8), value=st.none() | st.binary(max_size=8)), max_size=3
)
records = st.builds(
    NewRecord,
    key=texts,
    value=texts,
    timestamp=st.integers(0, 2**45).map(Millis),
    headers=st.just(()) | headers.map(tuple),
)
batches = st.builds(
    NewBatch,
    records=st.lists(records, min_size=1, max_size=80).map(tuple),
    base_offset=st.integers(0, 2**40).map(Offset),
    log_append_time=st.none() | st.just(Millis(5)),
    partition_leader_epoch=st.integers(-1, 9),
)


def reader_of(content: bytes) -> BatchReader:
    """Read one batch with other bytes before and behind it."""
    header = peek(content)
    start = 5 + HEADER_BYTES
    bounds = (start, 5 + header.size_in_bytes)
    return BatchReader(b"xxxxx" + content + b"yyyyy", bounds, header, HERE)


def expected(content: bytes) -> list[ConsumerRecord]:
    whole = decode(content)
    return [as_consumed(each, whole.header) for each in whole.records]


def as_consumed(record: Record, header: BatchHeader) -> ConsumerRecord:
    return ConsumerRecord(
        topic=HERE.topic,
        partition=HERE.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        timestamp_type=header.timestamp_type,
        key=record.key,
        value=record.value,
        headers=tuple((each.key, each.value) for each in record.headers),
        leader_epoch=header.partition_leader_epoch,
    )


@given(batches, st.integers(1, 30))
def test_the_fast_reader_returns_the_records_of_the_full_decoder(new: NewBatch, count: int) -> None:
    content = encode(new)
    reader = reader_of(content)
    read = []
    while reader.left:
        read += reader.read(count)

    assert read == expected(content)


@given(batches, st.data())
def test_a_compacted_batch_keeps_its_offset_gaps(new: NewBatch, data: st.DataObject) -> None:
    whole = decode(encode(new))
    kept = data.draw(st.lists(st.sampled_from(whole.records), unique_by=id))
    kept.sort(key=lambda each: each.offset)
    content = encode_retained(whole.header, tuple(kept))
    reader = reader_of(content)

    assert reader.read(1000) == expected(content)
    assert reader.left == 0


@given(batches, st.data())
def test_corrupt_records_are_handled_as_by_the_full_decoder(
    new: NewBatch, data: st.DataObject
) -> None:
    sound = encode(new)
    where = data.draw(st.integers(HEADER_BYTES, len(sound) - 1))
    flipped = sound[where] ^ data.draw(st.integers(1, 255))
    body = sound[HEADER_BYTES:where] + bytes((flipped,)) + sound[where + 1 :]
    content = assemble(peek(sound), body)
    try:
        careful: list[ConsumerRecord] | None = expected(content)
    except MalformedMessage:
        careful = None

    try:
        fast: list[ConsumerRecord] | None = reader_of(content).read(1000)
    except MalformedMessage:
        fast = None

    # Only the full decoder checks that an offset delta matches the index of its record.
    assert fast == careful or [each.offset for each in careful or ()] != [
        each.offset for each in fast or ()
    ]


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193])
def test_offset_deltas_of_every_varint_size_are_decoded(count: int) -> None:
    new = NewBatch(
        records=tuple(NewRecord(key=None, value=b"", timestamp=Millis(0)) for _ in range(count)),
        base_offset=Offset(1000),
    )
    reader = reader_of(encode(new))

    read = [each.offset for _ in range(20) for each in reader.read(count // 7)]

    assert read == list(range(1000, 1000 + count))


def test_a_wrong_record_length_is_rejected() -> None:
    content = bytearray(
        encode(NewBatch(records=(NewRecord(key=None, value=b"abc", timestamp=Millis(0)),)))
    )
    content[HEADER_BYTES] += 2

    with pytest.raises(MalformedMessage):
        reader_of(bytes(content)).read(1)
