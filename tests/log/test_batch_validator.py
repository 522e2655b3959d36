"""Validation of produced batches: what their headers claim against what they contain."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log.batch_validator import validate_batch, validate_in_steps
from kohort.log.errors import InvalidRecords, RequestRejected
from kohort.log.limits import Limits
from kohort.log.topic_config import TopicSettings, parse_settings
from kohort.types import ErrorCode, Millis
from kohort.wire.batch import Codec, Header, NewBatch, NewRecord, decode, encode, peek
from kohort.wire.batch_header import HEADER_BYTES, LOG_APPEND_TIME_FLAG, assemble
from kohort.wire.compression import compress, decompress
from kohort.wire.errors import MalformedMessage
from kohort.wire.record_checker import check_end, check_records
from kohort.wire.records import encode_records

NOW = Millis(1_700_000_000_000)
PLAIN = parse_settings({}, {})
COMPACTED = parse_settings({"cleanup.policy": "compact"}, {})
CODECS = tuple(Codec)


def new_records(count: int, value: bytes = b"value") -> tuple[NewRecord, ...]:
    return tuple(NewRecord(key=b"k", value=value, timestamp=NOW) for _ in range(count))


def batch_of(count: int, codec: Codec = Codec.NONE) -> bytes:
    return encode(NewBatch(records=new_records(count), codec=codec))


def body_of(batch: bytes) -> bytes:
    return decompress(peek(batch).codec, batch[HEADER_BYTES:])


def rebuilt(batch: bytes, body: bytes, claimed: int | None = None) -> bytes:
    """The batch with other encoded records, and perhaps with another number of records."""
    header = peek(batch)
    if claimed is not None:
        header = replace(header, record_count=claimed, last_offset_delta=claimed - 1)
    return assemble(header, compress(header.codec, body))


def refusal(batch: bytes) -> RequestRejected:
    with pytest.raises(RequestRejected) as error:
        validate_batch(batch, PLAIN, NOW)
    return error.value


def test_compressed_batch_that_claims_two_billion_records_is_refused() -> None:
    batch = batch_of(1, Codec.GZIP)

    claiming = rebuilt(batch, body_of(batch), claimed=2**31 - 1)

    assert refusal(claiming).code is ErrorCode.INVALID_RECORD
    assert len(claiming) < 100


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("claimed", [1, 2, 4, 5])
def test_record_count_must_be_that_of_the_content(codec: Codec, claimed: int) -> None:
    batch = batch_of(3, codec)

    assert refusal(rebuilt(batch, body_of(batch), claimed)).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("deltas", [(0, 2, 1), (0, 0, 1), (1, 2, 3), (0, 1, 1)])
def test_offset_deltas_must_be_consecutive(codec: Codec, deltas: tuple[int, ...]) -> None:
    body = encode_records(zip(deltas, new_records(3), strict=True), base_timestamp=NOW)

    assert refusal(rebuilt(batch_of(3, codec), body)).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("settings", [PLAIN, COMPACTED], ids=["plain", "compacted"])
def test_wrong_offset_delta_in_a_long_batch_is_refused(settings: TopicSettings) -> None:
    deltas = [*range(5_000), 4_999, *range(5_001, 6_000)]
    body = encode_records(zip(deltas, new_records(6_000), strict=True), base_timestamp=NOW)

    with pytest.raises(RequestRejected) as error:
        validate_batch(rebuilt(batch_of(6_000), body), settings, NOW)

    assert error.value.code is ErrorCode.INVALID_RECORD


def test_bytes_after_the_last_record_are_refused() -> None:
    batch = batch_of(2, Codec.LZ4)

    assert "after the last record" in refusal(rebuilt(batch, body_of(batch) + b"\0")).reason


def test_batch_that_decompresses_to_too_much_can_be_split_by_its_producer() -> None:
    batch = encode(NewBatch(records=new_records(1, bytes(5_000)), codec=Codec.ZSTD))

    with pytest.raises(RequestRejected) as error:
        next(validate_in_steps(batch, PLAIN, NOW, Limits(decompressed_bytes_max=4_000)))

    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_batch_with_too_many_records_can_be_split_by_its_producer() -> None:
    with pytest.raises(RequestRejected) as error:
        next(validate_in_steps(batch_of(11), PLAIN, NOW, Limits(batch_records_max=10)))

    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("settings", [PLAIN, COMPACTED], ids=["plain", "compacted"])
def test_long_batch_is_validated_in_steps(settings: TopicSettings) -> None:
    batch = batch_of(10_000, Codec.ZSTD)

    steps = sum(1 for _ in validate_in_steps(batch, settings, NOW))

    assert steps >= 9


def test_number_of_reported_records_is_limited() -> None:
    batch = batch_of(2_000)
    header = peek(batch)
    body = batch[HEADER_BYTES:]
    marked = assemble(replace(header, attributes=header.attributes | LOG_APPEND_TIME_FLAG), body)
    settings = parse_settings({"message.timestamp.type": "LogAppendTime"}, {})

    with pytest.raises(InvalidRecords) as error:
        validate_batch(marked, settings, NOW)

    assert len(error.value.faults) == 1_000


# The checker of records against the decoder


RECORD = st.builds(
    NewRecord,
    key=st.sampled_from((None, b"", b"k", b"key", b"x" * 70)),
    value=st.sampled_from((None, b"", b"v", b"y" * 70, b"z" * 130)),
    timestamp=st.sampled_from((NOW, Millis(NOW + 1), Millis(NOW + 100), Millis(NOW - 100_000))),
    headers=st.sampled_from(((), (Header(key="h", value=b"x"),), (Header(key="", value=None),))),
)


def runs() -> st.SearchStrategy[list[NewRecord]]:
    """Runs of equal records, which the checker skips, and others between them."""
    run = st.tuples(RECORD, st.integers(1, 40))
    return st.lists(run, min_size=1, max_size=4).map(
        lambda found: [record for record, times in found for _ in range(times)]
    )


@given(records=runs())
def test_every_valid_batch_is_accepted(records: list[NewRecord]) -> None:
    body = encode_records(enumerate(records), base_timestamp=NOW)

    check_end(body, check_records(body, 0, 0, len(records)))


@given(records=runs(), data=st.data())
def test_damaged_batch_is_accepted_only_if_it_can_be_decoded(
    records: list[NewRecord], data: st.DataObject
) -> None:
    body = bytearray(encode_records(enumerate(records), base_timestamp=NOW))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] ^= data.draw(st.integers(1, 255))
    batch = rebuilt(encode(NewBatch(records=tuple(records))), bytes(body))

    is_accepted = _is_accepted(bytes(body), len(records))

    assert is_accepted == _has_consecutive_offsets(batch)


def _is_accepted(body: bytes, count: int) -> bool:
    try:
        check_end(body, check_records(body, 0, 0, count))
    except MalformedMessage:
        return False
    return True


def _has_consecutive_offsets(batch: bytes) -> bool:
    try:
        records = decode(batch).records
    except MalformedMessage:
        return False
    return [record.offset for record in records] == list(range(len(records)))


def test_first_wrong_record_is_named() -> None:
    def deltas() -> Iterator[tuple[int, NewRecord]]:
        for index, record in enumerate(new_records(200)):
            yield (7 if index == 150 else index), record

    body = encode_records(deltas(), base_timestamp=NOW)

    with pytest.raises(MalformedMessage, match=r"records\[150\].offset_delta"):
        check_records(body, 0, 0, 200)
