"""Control batches with transaction markers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from kohort.types import Offset, ProducerEpoch, ProducerId
from kohort.wire.batch import NO_SEQUENCE, NewBatch, Record, decode, encode
from kohort.wire.control_batch import (
    EndTransactionMarker,
    MarkerType,
    find_marker,
    new_marker_batch,
)
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from tests.wire.batches import NOW


def marker_batch(marker: EndTransactionMarker) -> NewBatch:
    return new_marker_batch(
        marker,
        producer_id=ProducerId(9),
        producer_epoch=ProducerEpoch(2),
        timestamp=NOW,
        base_offset=Offset(41),
    )


COMMIT = EndTransactionMarker(type=MarkerType.COMMIT, coordinator_epoch=3)
RECORD = decode(encode(marker_batch(COMMIT))).records[0]


@given(kind=st.sampled_from(MarkerType), epoch=st.integers(-(2**31), 2**31 - 1))
def test_marker_round_trip(kind: MarkerType, epoch: int) -> None:
    marker = EndTransactionMarker(type=kind, coordinator_epoch=epoch)

    batch = decode(encode(marker_batch(marker)))

    assert [find_marker(record) for record in batch.records] == [marker]
    assert batch.header.is_control
    assert batch.header.is_transactional
    assert batch.header.base_sequence == NO_SEQUENCE
    assert (batch.header.producer_id, batch.header.producer_epoch) == (9, 2)
    assert batch.records[0].offset == 41


def test_marker_bytes_are_those_of_kafka() -> None:
    assert RECORD.key == bytes.fromhex("0000 0001")
    assert RECORD.value == bytes.fromhex("0000 00000003")


@pytest.mark.parametrize("kind", MarkerType)
def test_kafka_python_reads_our_markers(kind: MarkerType) -> None:
    marker = EndTransactionMarker(type=kind, coordinator_epoch=3)

    theirs = DefaultRecordBatch(encode(marker_batch(marker)))

    assert theirs.is_control_batch
    assert [(record.abort, record.commit) for record in theirs] == [
        (kind is MarkerType.ABORT, kind is MarkerType.COMMIT)
    ]


def test_other_control_record_is_no_marker() -> None:
    leader_change = replace(RECORD, key=bytes.fromhex("0000 0002"), value=b"anything")

    assert find_marker(leader_change) is None


def test_fields_of_later_marker_versions_are_ignored() -> None:
    later = replace(RECORD, key=b"\x00\x01\x00\x01new", value=b"\x00\x01\x00\x00\x00\x03new")

    assert find_marker(later) == COMMIT


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (replace(RECORD, key=None), "key"),
        (replace(RECORD, key=b"\x00\x00\x00"), "key"),
        (replace(RECORD, key=b"\xff\xff\x00\x01"), "key"),
        (replace(RECORD, value=None), "value"),
        (replace(RECORD, value=b"\x00\x00\x00\x00\x00"), "value"),
        (replace(RECORD, value=b"\xff\xff\x00\x00\x00\x03"), "value"),
    ],
)
def test_truncated_marker_is_malformed(record: Record, field: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        find_marker(record)

    assert caught.value.field == field


def test_too_large_coordinator_epoch_is_unencodable() -> None:
    with pytest.raises(UnencodableMessage, match="coordinator_epoch"):
        marker_batch(replace(COMMIT, coordinator_epoch=2**31))
