"""Decode batches to Arrow: the compiled loop and the wire decoder give the same records."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.errors import CorruptRecordError
from kohort.pipeline.decode import Decoder, PartitionSlice
from kohort.pipeline.spark_schema import arrow_schema
from kohort.types import Millis, Offset, Partition, ProducerEpoch, ProducerId, Topic, TopicPartition
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch import (
    Codec,
    Header,
    NewBatch,
    NewRecord,
    assign_offset,
    encode,
    iter_records,
    split,
)
from kohort.wire.control_batch import EndTransactionMarker, MarkerType, new_marker_batch
from tests.log.malformed_batches import MALFORMED

TOPIC = Topic("orders")
HERE = TopicPartition(TOPIC, Partition(3))
ALL_OFFSETS = PartitionSlice(
    topic=TOPIC, partition=Partition(3), first=Offset(0), stop=Offset(2**62)
)


def rows_of(
    content: bytes, wanted: PartitionSlice = ALL_OFFSETS, **options: Any
) -> list[dict[str, Any]]:
    aborted = options.pop("aborted", None)
    decoder = Decoder(wanted, includes_headers=True, **options)
    rows = []
    for batch in decoder.decode(content, aborted):
        batch.validate(full=True)
        assert batch.schema == arrow_schema(includes_headers=True)
        rows += batch.to_pylist()
    return rows


def wire_rows(content: bytes) -> list[dict[str, Any]]:
    """The same rows, decoded by kohort.wire."""
    rows = []
    for position, header in split(content):
        for record in iter_records(content, position):
            pairs = [{"key": each.key, "value": each.value} for each in record.headers]
            rows.append(
                {
                    "key": record.key,
                    "value": record.value,
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "timestampType": int(header.timestamp_type),
                    "headers": pairs or None,
                }
            )
    return rows


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without constant columns, and with timestamps in milliseconds."""
    for row in rows:
        assert (row.pop("topic"), row.pop("partition")) == (TOPIC, 3)
        row["timestamp"] = pa.scalar(row["timestamp"]).value // 1000
    return rows


headers = st.builds(Header, key=st.text(max_size=3), value=st.none() | st.binary(max_size=9))
records = st.builds(
    NewRecord,
    key=st.none() | st.binary(max_size=70),
    value=st.none() | st.binary(max_size=300),
    timestamp=st.integers(0, 2**41).map(Millis),
    headers=st.lists(headers, max_size=3).map(tuple),
)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    base, batches = 0, []
    for some in draw(st.lists(st.lists(records, min_size=1, max_size=8), max_size=5)):
        base += draw(st.integers(0, 3))
        batches.append(
            encode(
                NewBatch(
                    records=tuple(some),
                    base_offset=Offset(base),
                    codec=draw(st.sampled_from(Codec)),
                    log_append_time=draw(st.none() | st.just(Millis(1_700_000_000_000))),
                )
            )
        )
        base += len(some)
    return b"".join(batches)


@given(contents())
def test_every_batch_decodes_like_the_wire_decoder(content: bytes) -> None:
    assert comparable(rows_of(content)) == wire_rows(content)


@given(contents(), st.integers(0, 40), st.integers(0, 40))
def test_only_wanted_offsets_are_decoded(content: bytes, first: int, size: int) -> None:
    wanted = PartitionSlice(
        topic=TOPIC, partition=Partition(3), first=Offset(first), stop=Offset(first + size)
    )

    offsets = [row["offset"] for row in rows_of(content, wanted)]

    assert offsets == [
        row["offset"] for row in wire_rows(content) if first <= row["offset"] < first + size
    ]


@given(contents(), st.data())
def test_a_truncated_response_gives_complete_batches_and_the_next_offset(
    content: bytes, data: st.DataObject
) -> None:
    cut = content[: data.draw(st.integers(0, len(content)))]
    decoder = Decoder(ALL_OFFSETS, includes_headers=False)

    count = sum(batch.num_rows for batch in decoder.decode(cut))

    whole = [header for _, header in split(cut, truncated_ok=True)]
    assert count == sum(header.record_count for header in whole)
    assert decoder.next_offset == (whole[-1].next_offset if whole else 0)


@given(contents().filter(bool), st.data())
def test_damaged_bytes_are_refused_or_decode_to_valid_arrow(
    content: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(content)
    at = data.draw(st.integers(0, len(content) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))

    decoder = Decoder(ALL_OFFSETS, includes_headers=True, check_crcs=False)
    try:
        batches = list(decoder.decode(bytes(damaged)))
    except CorruptRecordError:
        return
    for batch in batches:
        batch.validate(full=True)


def test_a_timestamp_out_of_spark_s_range_is_clamped() -> None:
    record = NewRecord(key=None, value=b"a", timestamp=Millis(2**63 - 1))
    decoder = Decoder(ALL_OFFSETS, includes_headers=False)

    (batch,) = decoder.decode(encode(NewBatch(records=(record,))))

    assert batch.column("timestamp")[0].value == (2**63 - 1) // 1000 * 1000


def test_a_wrong_checksum_is_refused() -> None:
    content = bytearray(
        encode(NewBatch(records=(NewRecord(key=None, value=b"a", timestamp=Millis(1)),)))
    )
    content[-2] ^= 1

    with pytest.raises(CorruptRecordError, match="crc"):
        rows_of(bytes(content))


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
def test_records_before_a_malformed_batch_are_returned_first(
    malformed: Callable[[], bytes],
) -> None:
    bad = bytearray(malformed())
    assign_offset(bad, base_offset=Offset(1), partition_leader_epoch=0)
    content = transaction(ProducerId(1), 0, b"a") + bytes(bad) + transaction(ProducerId(1), 4, b"b")
    decoder = Decoder(ALL_OFFSETS, includes_headers=True)
    decoded = decoder.decode(content)

    assert next(decoded).column("value").to_pylist() == [b"a"]
    with pytest.raises(CorruptRecordError) as caught:
        next(decoded)

    error = caught.value
    assert (error.partition, error.offset, error.next_offset) == (HERE, 1, 4)


def test_a_malformed_header_behind_the_wanted_offsets_is_ignored() -> None:
    wanted = PartitionSlice(topic=TOPIC, partition=Partition(3), first=Offset(0), stop=Offset(1))
    bad = bytearray(transaction(ProducerId(1), 1, b"b"))
    bad[57:61] = (9).to_bytes(4)
    content = transaction(ProducerId(1), 0, b"a") + bytes(bad)

    assert [row["value"] for row in rows_of(content, wanted)] == [b"a"]
    with pytest.raises(CorruptRecordError, match="9 records for 1 offsets"):
        rows_of(content)


def test_aborted_records_and_control_records_are_dropped() -> None:
    writer, other = ProducerId(7), ProducerId(8)
    content = b"".join(
        (
            transaction(writer, 0, b"aborted"),
            transaction(other, 1, b"kept"),
            encode(
                new_marker_batch(
                    EndTransactionMarker(type=MarkerType.ABORT, coordinator_epoch=0),
                    producer_id=writer,
                    producer_epoch=ProducerEpoch(0),
                    base_offset=Offset(2),
                    timestamp=Millis(5),
                )
            ),
            transaction(writer, 3, b"kept as well"),
        )
    )
    aborted = [AbortedTransaction(producer_id=writer, first_offset=Offset(0))]

    values = [row["value"] for row in rows_of(content, aborted=aborted)]
    uncommitted = [row["value"] for row in rows_of(content)]

    assert values == [b"kept", b"kept as well"]
    assert uncommitted == [b"aborted", b"kept", b"kept as well"]


def transaction(producer_id: ProducerId, offset: int, content: bytes) -> bytes:
    return encode(
        NewBatch(
            records=(NewRecord(key=None, value=content, timestamp=Millis(1)),),
            base_offset=Offset(offset),
            is_transactional=True,
            producer_id=producer_id,
            producer_epoch=ProducerEpoch(0),
            base_sequence=0,
        )
    )
