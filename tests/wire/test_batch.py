"""Record batches: round trips, compatibility with other codecs, and changes by the broker."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.types import Millis, Offset, ProducerEpoch, ProducerId
from kohort.wire.batch import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Batch,
    Codec,
    Header,
    NewBatch,
    NewRecord,
    TimestampType,
    assign_offset,
    assign_timestamp,
    decode,
    encode,
    encode_retained,
    encode_simple_batch,
    iter_records,
    peek,
    read_keys,
    split,
    verify_crc,
)
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from tests.wire.batches import (
    NOW,
    SAMPLE,
    decode_with_kafka_python,
    decode_with_kio,
    encode_with_kafka_python,
    encode_with_kio,
    expected_records,
    new_batches,
)

every_codec = pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)

WHOLE_SECONDS = st.integers(0, 250_000_000).map(lambda seconds: 1000 * seconds)


@given(new=new_batches())
def test_batch_round_trip(new: NewBatch) -> None:
    data = encode(new)

    batch = decode(data)

    header = batch.header
    assert batch.records == expected_records(new)
    assert header.base_offset == new.base_offset
    assert header.last_offset == new.base_offset + len(new.records) - 1
    assert header.next_offset == new.base_offset + len(new.records)
    assert header.size_in_bytes == len(data)
    assert header.partition_leader_epoch == new.partition_leader_epoch
    assert header.codec is new.codec
    assert header.timestamp_type == (new.log_append_time is not None)
    assert header.is_transactional is new.is_transactional
    assert header.is_control is new.is_control
    assert not header.has_delete_horizon
    assert header.base_timestamp == new.records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in batch.records)
    assert header.producer_id == new.producer_id
    assert header.producer_epoch == new.producer_epoch
    assert header.base_sequence == new.base_sequence
    assert header.record_count == len(new.records)


@given(new=new_batches(codec=Codec.NONE))
def test_encoded_bytes_match_kafka_python(new: NewBatch) -> None:
    new = replace(
        new,
        base_offset=Offset(0),
        partition_leader_epoch=0,
        log_append_time=None,
        is_control=False,
    )

    assert encode(new) == encode_with_kafka_python(new)


@given(new=new_batches(timestamps=WHOLE_SECONDS, codec=Codec.NONE))
def test_encoded_bytes_match_kio(new: NewBatch) -> None:
    new = replace(new, log_append_time=None)

    assert encode(new) == encode_with_kio(new)


@every_codec
@given(data=st.data())
def test_kafka_python_decodes_our_bytes(codec: Codec, data: st.DataObject) -> None:
    new = replace(data.draw(new_batches(codec=codec)), is_control=False)

    theirs, records = decode_with_kafka_python(encode(new))

    assert records == expected_records(new)
    assert theirs.base_offset == new.base_offset
    assert theirs.leader_epoch == new.partition_leader_epoch
    assert theirs.compression_type == codec
    assert theirs.is_transactional == new.is_transactional
    assert theirs.timestamp_type == (new.log_append_time is not None)
    assert theirs.producer_id == new.producer_id
    assert theirs.producer_epoch == new.producer_epoch
    assert theirs.base_sequence == new.base_sequence


@every_codec
def test_we_decode_bytes_of_kafka_python(codec: Codec) -> None:
    compressible = tuple(replace(record, value=b"v" * 500) for record in SAMPLE.records) * 30
    new = replace(SAMPLE, base_offset=Offset(0), codec=codec, records=compressible)

    batch = decode(encode_with_kafka_python(new))

    assert batch.header.codec is codec
    assert batch.records == expected_records(new)


@given(new=new_batches(timestamps=WHOLE_SECONDS, codec=Codec.NONE))
def test_kio_decodes_our_bytes(new: NewBatch) -> None:
    new = replace(new, log_append_time=None)

    theirs, records = decode_with_kio(encode(new))

    assert records == expected_records(new)
    assert theirs.base_offset == new.base_offset
    assert theirs.partition_leader_epoch == new.partition_leader_epoch


def test_batch_has_the_defaults_of_kafka() -> None:
    header = peek(encode(NewBatch(records=(NewRecord(key=None, value=b"v", timestamp=NOW),))))

    assert header.base_offset == 0
    assert header.partition_leader_epoch == NO_PARTITION_LEADER_EPOCH
    assert header.producer_id == NO_PRODUCER_ID
    assert header.producer_epoch == NO_PRODUCER_EPOCH
    assert header.base_sequence == NO_SEQUENCE
    assert header.attributes == 0


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview])
def test_decode_any_buffer_type_at_any_position(convert: type) -> None:
    buffer = convert(b"before" + encode(SAMPLE) + b"after")

    batch = decode(buffer, 6)

    assert batch.records == expected_records(SAMPLE)
    assert all(type(record.value) is not memoryview for record in batch.records)
    assert tuple(iter_records(buffer, 6)) == batch.records
    assert peek(buffer, 6) == batch.header
    verify_crc(buffer, 6)


@given(new_batches())
def test_read_keys_matches_decoded_records(new: NewBatch) -> None:
    data = b"before" + encode(replace(new, codec=Codec.NONE))
    header = peek(data, 6)

    keys = read_keys(data, 6, header)

    assert keys == [(record.key, record.offset) for record in iter_records(data, 6)]


def test_peek_needs_no_records() -> None:
    data = encode(SAMPLE)

    assert peek(data[:61]) == decode(data).header


def test_split_returns_each_batch_position() -> None:
    batches = [encode(replace(SAMPLE, base_offset=Offset(offset))) for offset in (0, 3, 6)]
    size = len(batches[0])

    found = [(position, header.base_offset) for position, header in split(b"".join(batches))]

    assert found == [(0, 0), (size, 3), (2 * size, 6)]
    assert list(split(b"")) == []


def test_split_accepts_a_truncated_batch_only_if_allowed() -> None:
    one = encode(SAMPLE)

    for held in range(1, len(one)):
        cut = one + one[:held]
        assert [position for position, _ in split(cut, truncated_ok=True)] == [0]
        with pytest.raises(MalformedMessage) as caught:
            list(split(cut))
        assert caught.value.position >= len(one)
    assert list(split(one[:40], truncated_ok=True)) == []


def test_old_magic_is_reported_even_if_truncated() -> None:
    old = bytearray(encode(SAMPLE))
    old[16] = 1

    for size in (17, 40, 61, len(old)):
        with pytest.raises(MalformedMessage, match="magic 1 is not supported") as caught:
            list(split(bytes(old[:size]), truncated_ok=True))
        assert (caught.value.field, caught.value.position) == ("magic", 16)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_magic_is_rejected(magic: int) -> None:
    old = bytearray(encode(SAMPLE))
    old[16] = magic
    # Old messages may be shorter than a header of magic 2.
    old[8:12] = (30).to_bytes(4)

    with pytest.raises(MalformedMessage, match=f"magic {magic} is not supported"):
        decode(bytes(old[:42]))


@given(base_offset=st.integers(0, 2**62), epoch=st.integers(-1, 2**31 - 1))
def test_assign_offset_keeps_the_checksum(base_offset: int, epoch: int) -> None:
    data = bytearray(b"before" + encode(SAMPLE))

    assign_offset(data, 6, base_offset=Offset(base_offset), partition_leader_epoch=epoch)

    expected = replace(SAMPLE, base_offset=Offset(base_offset), partition_leader_epoch=epoch)
    assert data == b"before" + encode(expected)
    assert decode(data, 6).records == expected_records(expected)


@every_codec
def test_assign_timestamp_sets_log_append_time(codec: Codec) -> None:
    new = replace(SAMPLE, codec=codec)
    data = bytearray(b"before" + encode(new))

    assign_timestamp(
        data, 6, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=Millis(NOW + 9)
    )

    expected = replace(new, log_append_time=Millis(NOW + 9))
    assert data == b"before" + encode(expected)
    assert {record.timestamp for record in iter_records(data, 6)} == {NOW + 9}
    assert decode_with_kafka_python(bytes(data[6:]))[1] == expected_records(expected)

    assign_timestamp(
        data, 6, timestamp_type=TimestampType.CREATE_TIME, max_timestamp=Millis(NOW + 70_000)
    )
    assert data == b"before" + encode(new)


def test_assign_to_a_truncated_batch_is_malformed() -> None:
    data = bytearray(encode(SAMPLE)[:-1])

    with pytest.raises(MalformedMessage):
        assign_offset(data[:60], base_offset=Offset(1), partition_leader_epoch=0)
    with pytest.raises(MalformedMessage):
        assign_timestamp(
            data, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=Millis(1)
        )
    assert data == encode(SAMPLE)[:-1]


@every_codec
@given(keep=st.sets(st.integers(0, 2)))
def test_encode_retained_keeps_offset_range_and_producer(codec: Codec, keep: set[int]) -> None:
    original = decode(encode(replace(SAMPLE, codec=codec)))
    kept = tuple(record for index, record in enumerate(original.records) if index in keep)

    data = encode_retained(original.header, kept)

    batch = decode(data)
    assert batch.records == kept
    assert batch.header.base_offset == original.header.base_offset
    assert batch.header.next_offset == original.header.next_offset
    assert batch.header.producer_id == original.header.producer_id
    assert batch.header.base_sequence == original.header.base_sequence
    if kept:
        assert batch.header.base_timestamp == kept[0].timestamp
        assert batch.header.max_timestamp == max(record.timestamp for record in kept)
        assert decode_with_kafka_python(data)[1] == kept
    else:
        assert len(data) == 61
        assert batch.header.base_timestamp == NO_TIMESTAMP
        assert batch.header.max_timestamp == original.header.max_timestamp


def test_encode_retained_with_all_records_changes_nothing() -> None:
    for new in (SAMPLE, replace(SAMPLE, codec=Codec.ZSTD), replace(SAMPLE, is_transactional=True)):
        batch = decode(encode(new))

        assert encode_retained(batch.header, batch.records) == encode(new)


def test_encode_retained_keeps_log_append_time_and_delete_horizon() -> None:
    stamped = decode(encode(replace(SAMPLE, log_append_time=Millis(NOW + 9))))
    header = replace(stamped.header, attributes=stamped.header.attributes | 0x40)

    batch = decode(encode_retained(header, stamped.records[1:]))

    assert batch == Batch(header=batch.header, records=stamped.records[1:])
    assert batch.header.has_delete_horizon
    assert batch.header.base_timestamp == header.base_timestamp
    assert batch.header.max_timestamp == NOW + 9


def test_iter_records_decodes_lazily() -> None:
    data = encode(replace(SAMPLE, records=SAMPLE.records + SAMPLE.records[-1:]))
    data = data[:-1] + b"\x05"

    records = iter_records(data, check_crc=False)

    assert next(records).key == b"key"
    assert next(records).key is None
    assert next(records).key == b""
    with pytest.raises(MalformedMessage, match=r"records\[3\]"):
        next(records)


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewBatch(records=()), "records"),
        (replace(SAMPLE, base_offset=Offset(2**63)), "header"),
        (replace(SAMPLE, partition_leader_epoch=2**31), "header"),
        (replace(SAMPLE, producer_id=ProducerId(2**63)), "header"),
        (replace(SAMPLE, producer_epoch=ProducerEpoch(2**15)), "header"),
        (replace(SAMPLE, base_sequence=2**31), "header"),
        (replace(SAMPLE, log_append_time=Millis(2**63)), "header"),
    ],
)
def test_invalid_batch_field_is_unencodable(new: NewBatch, field: str) -> None:
    with pytest.raises(UnencodableMessage) as caught:
        encode(new)

    assert caught.value.field == field


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": Millis(2**64)},
        {"headers": (Header(key="half a pair: \ud800", value=None),)},
    ],
)
def test_invalid_record_is_unencodable_with_its_index(change: dict) -> None:
    records = (*SAMPLE.records, replace(SAMPLE.records[0], **change))

    with pytest.raises(UnencodableMessage) as caught:
        encode(replace(SAMPLE, records=records))

    assert caught.value.field == "records[3]"


@given(
    st.lists(st.tuples(st.binary(max_size=200), st.none() | st.binary(max_size=200)), min_size=1)
)
def test_encode_simple_batch_matches_encode(
    pairs: list[tuple[bytes, bytes | None]],
) -> None:
    now = Millis(1_700_000_000_000)
    records = tuple(NewRecord(key=key, value=value, timestamp=now) for key, value in pairs)

    assert encode_simple_batch(pairs, now) == encode(NewBatch(records=records))
