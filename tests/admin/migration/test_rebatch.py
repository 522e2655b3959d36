"""Rebatching keeps all records in order, and the target accepts the batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.migration.rebatch import (
    OutgoingBatch,
    RecordTooLarge,
    checksum,
    decode_batches,
    end_of,
    rebatch,
    seal_batch,
)
from kohort.client.fetch.completed_fetch import FetchedBatches
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.log.batch_validator import validate_batch
from kohort.log.errors import RequestRejected
from kohort.log.topic_config import parse_settings
from kohort.types import Millis, Offset, ProducerEpoch, ProducerId, Topic
from kohort.wire import batch
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch import Codec, Header, NewBatch, NewRecord, Record, TimestampType
from kohort.wire.control_batch import EndTransactionMarker, MarkerType, new_marker_batch
from tests.client.node_cluster import at

PARTITION = at(Topic("orders"))
LIMIT = 1_000_000
PRODUCER = ProducerId(77)
SETTINGS = parse_settings({})


def fetched(
    content: bytes, first: int = 0, aborted: tuple[AbortedTransaction, ...] | None = None
) -> FetchedBatches:
    return FetchedBatches(
        partition=PARTITION, first=Offset(first), content=content, aborted=aborted
    )


def outgoing(content: FetchedBatches, bytes_max: int = LIMIT) -> list[OutgoingBatch]:
    return list(rebatch(decode_batches(content), bytes_max))


def contents_of(records: list[ConsumerRecord]) -> list[tuple[object, ...]]:
    return [(each.key, each.value, each.headers, each.timestamp) for each in records]


def consumed(record: Record) -> ConsumerRecord:
    """The record as a consumer returns it."""
    return ConsumerRecord(
        topic=PARTITION.topic,
        partition=PARTITION.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        timestamp_type=TimestampType.CREATE_TIME,
        key=record.key,
        value=record.value,
        headers=tuple((each.key, each.value) for each in record.headers),
        leader_epoch=0,
    )


texts = st.one_of(st.none(), st.binary(max_size=40))
new_records = st.builds(
    NewRecord,
    key=texts,
    value=texts,
    timestamp=st.integers(-1, 2**45).map(Millis),
    headers=st.lists(st.builds(Header, key=st.text(max_size=5), value=texts), max_size=3).map(
        tuple
    ),
)


@st.composite
def contents(draw: st.DrawFn) -> tuple[bytes, list[ConsumerRecord]]:
    """Consecutive batches, some of them compacted, and their records."""
    parts, records, offset = list[bytes](), list[ConsumerRecord](), 0
    for _ in range(draw(st.integers(1, 5))):
        new = draw(st.lists(new_records, min_size=1, max_size=6))
        made = batch.encode(
            NewBatch(
                records=tuple(new),
                base_offset=Offset(offset),
                codec=draw(st.sampled_from(Codec)),
                log_append_time=draw(st.sampled_from([None, None, Millis(5_000)])),
            )
        )
        decoded = batch.decode(made)
        kept = decoded.records
        if draw(st.booleans()):
            chosen = draw(st.sets(st.integers(0, len(new) - 1)))
            kept = tuple(each for number, each in enumerate(decoded.records) if number in chosen)
            made = batch.encode_retained(decoded.header, kept)
        parts.append(made)
        records += map(consumed, kept)
        offset += len(new)
    return b"".join(parts), records


@given(made=contents(), first=st.integers(0, 12), bytes_max=st.sampled_from([400, LIMIT]))
def test_all_records_are_copied_and_the_batches_are_valid(
    made: tuple[bytes, list[ConsumerRecord]], first: int, bytes_max: int
) -> None:
    content, records = made
    expected = [each for each in records if each.offset >= first]

    batches = outgoing(fetched(content, first), bytes_max)

    copied: list[ConsumerRecord] = []
    for outgoing_batch in batches:
        number = len(copied)
        sealed = seal_batch(
            outgoing_batch, producer_id=PRODUCER, producer_epoch=ProducerEpoch(0), number=number
        )
        header = validate_batch(sealed, SETTINGS, Millis(2**45))
        assert (header.producer_id, header.base_sequence) == (PRODUCER, number)
        assert len(sealed) <= bytes_max
        copied += map(consumed, batch.decode(sealed).records)
    assert contents_of(copied) == contents_of(expected)
    assert [offset for outgoing_batch in batches for offset in outgoing_batch.offsets] == [
        e.offset for e in expected
    ]
    assert checksum(copied, 0) == checksum(expected, 0)


@given(made=contents(), cut=st.integers(0, 30))
def test_a_checksum_does_not_depend_on_batch_boundaries(
    made: tuple[bytes, list[ConsumerRecord]], cut: int
) -> None:
    _, records = made

    assert checksum(records[cut:], checksum(records[:cut], 0)) == checksum(records, 0)


def test_a_checksum_detects_missing_and_changed_records() -> None:
    records = [
        consumed(Record(offset=Offset(n), timestamp=Millis(n), key=b"%d" % n, value=None))
        for n in range(5)
    ]
    changed = consumed(Record(offset=Offset(2), timestamp=Millis(2), key=b"2", value=b""))

    sums = {
        checksum(some, 0)
        for some in (
            records,
            records[1:],
            records[:-1],
            records[::-1],
            [*records[:2], changed, *records[3:]],
        )
    }

    assert len(sums) == 5


@pytest.mark.parametrize("codec", list(Codec))
def test_a_whole_batch_is_copied_without_reencoding(codec: Codec) -> None:
    new = tuple(NewRecord(key=b"key", value=b"value" * 50, timestamp=Millis(n)) for n in range(9))
    made = batch.encode(NewBatch(records=new, base_offset=Offset(40), codec=codec))

    (outgoing_batch,) = outgoing(fetched(made))

    assert outgoing_batch.codec is codec
    assert made.endswith(outgoing_batch.body)


def test_small_batches_with_the_same_codec_are_merged() -> None:
    new = NewRecord(key=None, value=b"value", timestamp=Millis(0))
    kinds = [Codec.GZIP] * 3 + [Codec.NONE] * 2 + [Codec.GZIP]
    content = b"".join(
        batch.encode(NewBatch(records=(new,), base_offset=Offset(number), codec=codec))
        for number, codec in enumerate(kinds)
    )

    batches = outgoing(fetched(content))

    assert [(outgoing_batch.codec, len(outgoing_batch.records)) for outgoing_batch in batches] == [
        (Codec.GZIP, 3),
        (Codec.NONE, 2),
        (Codec.GZIP, 1),
    ]


def test_a_record_that_is_too_large_is_named() -> None:
    new = NewRecord(key=None, value=b"x" * 500, timestamp=Millis(0))
    content = batch.encode(NewBatch(records=(new, new), base_offset=Offset(8)))

    with pytest.raises(RecordTooLarge, match="offset 8 takes"):
        outgoing(fetched(content), 400)


def test_aborted_records_and_markers_are_dropped() -> None:
    def of(producer: int, offset: int, value: bytes) -> bytes:
        return batch.encode(
            NewBatch(
                records=(NewRecord(key=None, value=value, timestamp=Millis(0)),),
                base_offset=Offset(offset),
                is_transactional=True,
                producer_id=ProducerId(producer),
                producer_epoch=ProducerEpoch(0),
                base_sequence=0,
            )
        )

    def marker(producer: int, offset: int, kind: MarkerType) -> bytes:
        new = new_marker_batch(
            EndTransactionMarker(type=kind, coordinator_epoch=0),
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(0),
            timestamp=Millis(0),
            base_offset=Offset(offset),
        )
        return batch.encode(new)

    content = b"".join(
        (
            of(1, 0, b"aborted"),
            of(2, 1, b"committed"),
            marker(1, 2, MarkerType.ABORT),
            of(1, 3, b"later"),
            marker(2, 4, MarkerType.COMMIT),
            marker(1, 5, MarkerType.COMMIT),
        )
    )
    aborted = (AbortedTransaction(producer_id=ProducerId(1), first_offset=Offset(0)),)

    given = fetched(content, aborted=aborted)
    batches = outgoing(given)

    assert [each.value for outgoing_batch in batches for each in outgoing_batch.records] == [
        b"committed",
        b"later",
    ]
    assert end_of(given) == 6


def test_a_batch_of_the_source_is_invalid_without_a_new_header() -> None:
    """Why batches get a new header: a broker rejects a base offset other than 0."""
    new = NewRecord(key=None, value=b"value", timestamp=Millis(0))
    made = batch.encode(NewBatch(records=(new,), base_offset=Offset(8)))

    with pytest.raises(RequestRejected):
        validate_batch(made, SETTINGS, Millis(0))
