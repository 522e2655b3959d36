"""Corrupt batches raise MalformedMessage with field and position."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError

from kohort.wire.batch import Codec, Header, decode, encode, peek, read_keys, split, verify_crc
from kohort.wire.compression import compress
from kohort.wire.errors import MalformedMessage
from kohort.wire.varint import encode_varint, encode_varlong
from tests.wire.batches import (
    SAMPLE,
    decode_with_kafka_python,
    encode_body,
    expected_records,
    update_crc,
)

every_codec = pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)

BASE_OFFSET = range(8)
LEADER_EPOCH = range(12, 16)


def record(
    *,
    attributes: bytes = b"\x00",
    timestamp_delta: bytes = b"\x00",
    offset_delta: bytes = b"\x00",
    key: bytes = b"\x02k",
    value: bytes = b"\x02v",
    headers: bytes = b"\x00",
    length: int | None = None,
) -> bytes:
    """The bytes of a record from encoded fields, which may be invalid."""
    content = attributes + timestamp_delta + offset_delta + key + value + headers
    return encode_varint(len(content) if length is None else length) + content


@every_codec
def test_batch_truncated_at_any_byte_is_malformed(codec: Codec) -> None:
    data = encode(replace(SAMPLE, codec=codec))

    for size in range(len(data)):
        for read in (decode, verify_crc):
            with pytest.raises(MalformedMessage) as caught:
                read(data[:size])
            assert caught.value.message == "RecordBatch"
            assert 0 <= caught.value.position <= size


@every_codec
def test_checksum_detects_every_changed_byte_it_covers(codec: Codec) -> None:
    data = encode(replace(SAMPLE, codec=codec))
    original = decode(data)

    for position in range(len(data)):
        for flip in (0x01, 0x08, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= flip
            if position in BASE_OFFSET:
                batch = decode(damaged)
                shift = batch.header.base_offset - original.header.base_offset
                assert shift != 0
                assert batch.records[0].offset == original.records[0].offset + shift
            elif position in LEADER_EPOCH:
                batch = decode(damaged)
                assert batch.header.partition_leader_epoch != 7
                assert batch.records == original.records
            else:
                with pytest.raises(MalformedMessage):
                    decode(damaged)


@every_codec
def test_corruption_with_a_valid_checksum_raises_only_malformed(codec: Codec) -> None:
    data = encode(replace(SAMPLE, codec=codec))

    for position in range(21, len(data)):
        for flip in (0x01, 0x02, 0x40, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= flip
            try:
                decode(update_crc(damaged), max_bytes=10_000)
            except MalformedMessage as error:
                assert error.position <= len(data) or "decompressed" in error.message


@given(changes=st.dictionaries(st.integers(61, 61 + 260), st.integers(0, 255), max_size=3))
def test_accepted_corrupt_records_match_kafka_python(
    changes: dict[int, int],
) -> None:
    damaged = bytearray(encode(SAMPLE))
    for position, value in changes.items():
        damaged[min(position, len(damaged) - 1)] = value
    data = update_crc(damaged)

    try:
        records = decode(data).records
    except MalformedMessage:
        return
    try:
        assert decode_with_kafka_python(data)[1] == records
    except CorruptRecordError:
        # kafka-python reads the attributes as a varint; they are one unused byte.
        assert any(value >= 0x80 for value in changes.values())


@given(body=st.binary(max_size=80), record_count=st.integers(-1, 12))
def test_random_records_raise_only_malformed(body: bytes, record_count: int) -> None:
    try:
        assert len(decode(encode_body(body, record_count=record_count)).records) == record_count
    except MalformedMessage as error:
        assert 0 <= error.position <= 61 + len(body)


@given(data=st.binary(max_size=120))
def test_random_bytes_raise_only_malformed(data: bytes) -> None:
    for magic in (data, data[:16] + b"\x02" + data[17:]):
        for read in (decode, peek, verify_crc, lambda buf: list(split(buf, truncated_ok=True))):
            try:
                read(magic)
            except MalformedMessage as error:
                assert error.position <= len(data) + 1


@pytest.mark.parametrize(
    ("body", "field", "position"),
    [
        pytest.param(record(length=-1), "length", 0, id="negative length"),
        pytest.param(record(length=-9), "length", 0, id="negative length of the right size"),
        pytest.param(record(length=100), "length", 0, id="length beyond the batch"),
        pytest.param(record(length=7), "headers", 8, id="length short of the fields"),
        pytest.param(record() + record(length=9), "length", 9, id="length of the second record"),
        pytest.param(record(headers=b"\x00\x00"), "length", 0, id="byte after the fields"),
        pytest.param(b"\xff" * 6 + bytes(9), "length", 0, id="length without end"),
        pytest.param(b"\x00" + bytes(9), "timestamp_delta", 2, id="record of no bytes"),
        pytest.param(
            record(timestamp_delta=b"\xff" * 11), "timestamp_delta", 2, id="time without end"
        ),
        pytest.param(record(offset_delta=b"\x01"), "offset_delta", 3, id="negative offset"),
        pytest.param(record(offset_delta=b"\x06"), "offset_delta", 3, id="offset past the batch"),
        pytest.param(record(offset_delta=b"\xff" * 6), "offset_delta", 3, id="offset without end"),
        pytest.param(record(key=b"\x03"), "key", 4, id="negative key length"),
        pytest.param(record(key=b"\x7e"), "key", 4, id="key beyond the record"),
        pytest.param(record(key=b"\xfe\xff\xff\xff\x0f"), "key", 4, id="huge key"),
        pytest.param(record(value=b"\x05"), "value", 6, id="negative value length"),
        pytest.param(record(value=b"\x7e"), "value", 6, id="value beyond the record"),
        pytest.param(record(headers=b"\x01"), "headers", 8, id="negative number of headers"),
        pytest.param(
            record(headers=b"\x04\x00\x01"), "headers", 8, id="headers that are not there"
        ),
        pytest.param(
            record(headers=b"\xfe\xff\xff\xff\x0f"), "headers", 8, id="huge number of headers"
        ),
        pytest.param(record(headers=b"\x02\x01\x01"), "headers[0].key", 9, id="null header key"),
        pytest.param(
            record(headers=b"\x04\x00\x02v\x01"),
            "headers[1].key",
            12,
            id="null header key in place of a value",
        ),
        pytest.param(
            record(headers=b"\x02\x02\xff\x01"), "headers[0].key", 9, id="header key not UTF-8"
        ),
        pytest.param(
            record(headers=b"\x02\x08k\x01"), "headers[0].key", 9, id="header key beyond the record"
        ),
        pytest.param(
            record(headers=b"\x02\x02k\x03"), "headers[0].value", 11, id="negative header length"
        ),
        pytest.param(
            record(headers=b"\x04\x00\x01\x02k\x08"),
            "headers[1].value",
            13,
            id="header value beyond the record",
        ),
    ],
)
def test_record_error_has_field_and_position(body: bytes, field: str, position: int) -> None:
    good = record(offset_delta=b"\x02")
    index = body.startswith(record())

    for following in (b"", good):
        data = encode_body(body + following, record_count=1 + index, last_offset_delta=2)
        with pytest.raises(MalformedMessage) as caught:
            decode(data)
        assert caught.value.field == f"records[{int(index)}].{field}"
        assert caught.value.position == 61 + position


def test_record_helper_builds_a_valid_record() -> None:
    batch = decode(encode_body(record(headers=b"\x02\x02h\x01"), record_count=1))

    assert batch.records[0].key == b"k"
    assert batch.records[0].value == b"v"
    assert batch.records[0].headers == (Header(key="h", value=None),)


@every_codec
def test_bytes_after_the_last_record_are_malformed(codec: Codec) -> None:
    data = bytearray(encode_body(compress(codec, record() + b"\x00"), record_count=1))
    data[22] |= codec

    with pytest.raises(MalformedMessage, match="1 bytes after the last record") as caught:
        decode(update_crc(data))

    assert caught.value.field == "records"
    assert caught.value.position == (61 if codec is Codec.NONE else 0) + len(record())


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_error_in_decompressed_records_has_its_position(codec: Codec) -> None:
    body = record() + record(key=b"\x03", offset_delta=b"\x02")
    data = bytearray(encode_body(compress(codec, body), record_count=2))
    data[22] |= codec

    with pytest.raises(MalformedMessage) as caught:
        decode(update_crc(data))

    assert caught.value.message == "RecordBatch (decompressed)"
    assert caught.value.field == "records[1].key"
    assert caught.value.position == len(record()) + 4


@pytest.mark.parametrize(
    ("at", "size", "value", "field"),
    [
        pytest.param(8, 4, -1, "batch_length", id="negative length"),
        pytest.param(8, 4, 48, "batch_length", id="length short of a header"),
        pytest.param(8, 4, 2**31 - 1, "batch_length", id="length beyond the bytes"),
        pytest.param(16, 1, 0, "magic", id="magic 0"),
        pytest.param(16, 1, 1, "magic", id="magic 1"),
        pytest.param(16, 1, 3, "magic", id="magic of the future"),
        pytest.param(16, 1, -1, "magic", id="negative magic"),
        pytest.param(21, 2, 5, "attributes", id="unknown codec"),
        pytest.param(21, 2, 7, "attributes", id="last unknown codec"),
        pytest.param(23, 4, -1, "last_offset_delta", id="negative span"),
        pytest.param(23, 4, 1, "record_count", id="more records than offsets"),
        pytest.param(0, 8, 2**63 - 2, "base_offset", id="offsets past the last one"),
        pytest.param(57, 4, -1, "record_count", id="negative number of records"),
        pytest.param(57, 4, 2**31 - 1, "record_count", id="absurd number of records"),
        pytest.param(57, 4, 4, "record_count", id="one record too many"),
    ],
)
def test_header_error_has_field_and_position(at: int, size: int, value: int, field: str) -> None:
    damaged = bytearray(encode(SAMPLE))
    damaged[at : at + size] = value.to_bytes(size, signed=True)

    with pytest.raises(MalformedMessage) as caught:
        decode(update_crc(damaged))

    assert caught.value.field == field
    assert caught.value.position == (57 if field == "record_count" else at)


def test_too_small_record_count_is_malformed() -> None:
    damaged = bytearray(encode(SAMPLE))
    damaged[57:61] = (2).to_bytes(4)

    with pytest.raises(MalformedMessage, match="bytes after the last record"):
        decode(update_crc(damaged))


@every_codec
def test_too_large_record_count_is_rejected_before_decoding(codec: Codec) -> None:
    many = 2**31 - 1
    data = bytearray(encode_body(compress(codec, record() * 50), record_count=many))
    data[22] |= codec
    sealed = update_crc(data)
    decode(encode(replace(SAMPLE, codec=codec)))
    tracemalloc.start()

    with pytest.raises(MalformedMessage) as caught:
        decode(sealed)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.field == "record_count"
    assert peak < 300_000


def test_too_large_header_count_is_rejected_before_decoding() -> None:
    tiny_headers = bytes(1_000_000)
    claim = record(headers=encode_varint(400_000))
    data = encode_body(claim + tiny_headers, record_count=1)
    tracemalloc.start()

    with pytest.raises(MalformedMessage, match="400000 headers do not fit into 0 bytes"):
        decode(data)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(data)


def test_wrong_checksum_is_reported_unless_ignored() -> None:
    damaged = bytearray(encode(SAMPLE))
    damaged[17] ^= 1

    for read in (decode, verify_crc):
        with pytest.raises(MalformedMessage) as caught:
            read(damaged)
        assert (caught.value.field, caught.value.position) == ("crc", 17)
    assert decode(damaged, check_crc=False).records == expected_records(SAMPLE)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_decompression_bomb_in_a_batch_is_rejected(codec: Codec) -> None:
    records = (replace(SAMPLE.records[0], value=bytes(1_000_000)),)
    data = encode(replace(SAMPLE, records=records, codec=codec))

    assert decode(data, max_bytes=1_000_100).records[0].value == bytes(1_000_000)
    with pytest.raises(MalformedMessage, match=f"{codec.name.lower()}: .*exceeds") as caught:
        decode(data, max_bytes=1_000_000)

    assert caught.value.field == "records"
    assert caught.value.position >= 61


@given(delta=st.integers(-(2**63), 2**63 - 1))
def test_timestamp_delta_round_trip(delta: int) -> None:
    data = encode_body(record(timestamp_delta=encode_varlong(delta)), record_count=1)

    assert decode(data).records[0].timestamp == peek(data).base_timestamp + delta


@given(st.data())
def test_keys_of_corrupt_records_are_rejected_or_within_the_batch(
    data: st.DataObject,
) -> None:
    batch = bytearray(encode(replace(SAMPLE, codec=Codec.NONE)))
    header = peek(batch)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))

    try:
        keys = read_keys(batch, 0, header)
    except MalformedMessage as error:
        assert error.field.startswith("records[")
        assert 61 <= error.position <= len(batch)
    else:
        assert len(keys) == header.record_count
        assert all(header.base_offset <= offset <= header.last_offset for _, offset in keys)
