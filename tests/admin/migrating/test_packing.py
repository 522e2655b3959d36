"""Batches of A become batches that B takes, with the same records in the same order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.migrating.packing import (
    Load,
    TooLarge,
    checksum,
    end_of,
    open_batches,
    pack,
    seal_load,
)
from kohort.client.fetching.parcel import FetchedBatches
from kohort.client.fetching.records import ConsumerRecord
from kohort.log.admission import admit
from kohort.log.errors import Refused
from kohort.log.settings import parse_settings
from kohort.types import Millis, Offset, ProducerEpoch, ProducerId, Topic
from kohort.wire import batch
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch import Codec, Header, NewBatch, NewRecord, Record, TimestampType
from kohort.wire.control import EndTransactionMarker, MarkerType, new_marker_batch
from tests.client.clusters import at

PLACE = at(Topic("orders"))
LIMIT = 1_000_000
PRODUCER = ProducerId(77)
SETTINGS = parse_settings({})


def fetched(
    content: bytes, first: int = 0, aborted: tuple[AbortedTransaction, ...] | None = None
) -> FetchedBatches:
    return FetchedBatches(partition=PLACE, first=Offset(first), content=content, aborted=aborted)


def loads_of(content: FetchedBatches, bytes_max: int = LIMIT) -> list[Load]:
    return list(pack(open_batches(content), bytes_max))


def told(records: list[ConsumerRecord]) -> list[tuple[object, ...]]:
    return [(each.key, each.value, each.headers, each.timestamp) for each in records]


def consumed(record: Record) -> ConsumerRecord:
    """As a consumer would have it."""
    return ConsumerRecord(
        topic=PLACE.topic,
        partition=PLACE.partition,
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
    """Batches in a row, some of them compacted, and the records in them."""
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
        opened = batch.decode(made)
        kept = opened.records
        if draw(st.booleans()):
            chosen = draw(st.sets(st.integers(0, len(new) - 1)))
            kept = tuple(each for number, each in enumerate(opened.records) if number in chosen)
            made = batch.encode_retained(opened.header, kept)
        parts.append(made)
        records += map(consumed, kept)
        offset += len(new)
    return b"".join(parts), records


@given(made=contents(), first=st.integers(0, 12), bytes_max=st.sampled_from([400, LIMIT]))
def test_all_that_is_wanted_is_packed_and_b_takes_it(
    made: tuple[bytes, list[ConsumerRecord]], first: int, bytes_max: int
) -> None:
    content, records = made
    wanted = [each for each in records if each.offset >= first]

    loads = loads_of(fetched(content, first), bytes_max)

    arrived: list[ConsumerRecord] = []
    for load in loads:
        number = len(arrived)
        sealed = seal_load(
            load, producer_id=PRODUCER, producer_epoch=ProducerEpoch(0), number=number
        )
        header = admit(sealed, SETTINGS, Millis(2**45))
        assert (header.producer_id, header.base_sequence) == (PRODUCER, number)
        assert len(sealed) <= bytes_max
        arrived += map(consumed, batch.decode(sealed).records)
    assert told(arrived) == told(wanted)
    assert [offset for load in loads for offset in load.offsets] == [e.offset for e in wanted]
    assert checksum(arrived, 0) == checksum(wanted, 0)


@given(made=contents(), cut=st.integers(0, 30))
def test_a_checksum_does_not_depend_on_where_batches_end(
    made: tuple[bytes, list[ConsumerRecord]], cut: int
) -> None:
    _, records = made

    assert checksum(records[cut:], checksum(records[:cut], 0)) == checksum(records, 0)


def test_a_checksum_notices_what_is_missing_or_changed() -> None:
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
def test_a_whole_batch_travels_as_it_is(codec: Codec) -> None:
    new = tuple(NewRecord(key=b"key", value=b"value" * 50, timestamp=Millis(n)) for n in range(9))
    made = batch.encode(NewBatch(records=new, base_offset=Offset(40), codec=codec))

    (load,) = loads_of(fetched(made))

    assert load.codec is codec
    assert made.endswith(load.body)


def test_small_batches_of_one_kind_become_one() -> None:
    new = NewRecord(key=None, value=b"value", timestamp=Millis(0))
    kinds = [Codec.GZIP] * 3 + [Codec.NONE] * 2 + [Codec.GZIP]
    content = b"".join(
        batch.encode(NewBatch(records=(new,), base_offset=Offset(number), codec=codec))
        for number, codec in enumerate(kinds)
    )

    loads = loads_of(fetched(content))

    assert [(load.codec, len(load.records)) for load in loads] == [
        (Codec.GZIP, 3),
        (Codec.NONE, 2),
        (Codec.GZIP, 1),
    ]


def test_a_record_that_does_not_fit_is_named() -> None:
    new = NewRecord(key=None, value=b"x" * 500, timestamp=Millis(0))
    content = batch.encode(NewBatch(records=(new, new), base_offset=Offset(8)))

    with pytest.raises(TooLarge, match="offset 8 takes"):
        loads_of(fetched(content), 400)


def test_aborted_records_and_markers_stay_behind() -> None:
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
    loads = loads_of(given)

    assert [each.value for load in loads for each in load.records] == [b"committed", b"later"]
    assert end_of(given) == 6


def test_b_would_not_take_a_batch_as_it_lies_in_a() -> None:
    """Why batches are sealed anew: this is what would happen without it."""
    new = NewRecord(key=None, value=b"value", timestamp=Millis(0))
    made = batch.encode(NewBatch(records=(new,), base_offset=Offset(8)))

    with pytest.raises(Refused):
        admit(made, SETTINGS, Millis(0))
