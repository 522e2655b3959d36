"""Append: assigned offsets and timestamps, and the error codes of invalid batches."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kohort.log.appended_batch import Appended, TrustedBatch
from kohort.log.errors import InvalidRecords, RequestRejected
from kohort.log.partition import PartitionLog
from kohort.types import ErrorCode, Millis, Offset
from kohort.wire.batch import (
    Codec,
    NewBatch,
    Record,
    TimestampType,
    assign_offset,
    decode,
    encode,
    peek,
)
from kohort.wire.batch_header import checksum
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    TOPIC,
    headers_of,
    marker_batch,
    new_batch,
    new_record,
    numbered_batch,
    open_log,
    read_all,
    records_of,
)
from tests.wire.batches import new_batches

CLIENT_BATCHES = new_batches().filter(
    lambda new: (
        not new.is_control
        and not new.is_transactional
        and new.log_append_time is None
        and max(record.timestamp for record in new.records) <= NOW
    )
)


def encode_without_producer(new: NewBatch) -> bytes:
    plain = NewBatch(records=new.records, codec=new.codec)
    return encode(plain)


@given(batches=st.lists(CLIENT_BATCHES, min_size=1, max_size=6))
@settings(max_examples=15, suppress_health_check=[HealthCheck.filter_too_much])
def test_read_returns_the_appended_records(batches: list[NewBatch]) -> None:
    sent = [encode_without_producer(new) for new in batches]
    with open_log(MemoryDisk(), {"internal.segment.bytes": "5000"}) as log:
        appended = [log.append(data, NOW) for data in sent]

        records = records_of(read_all(log))

        # Decoded offsets are relative to the base offset 0 of a client's batch.
        expected = [
            (each.base_offset + record.offset, record.key, record.value, record.timestamp)
            for each, data in zip(appended, sent, strict=True)
            for record in decode(data).records
        ]
        assert [(r.offset, r.key, r.value, r.timestamp) for r in records] == expected


def trusted_batches_for(log: PartitionLog, counts: list[int], size: int) -> list[TrustedBatch]:
    """Batches with offsets from the log end on."""
    batches, next_offset = [], log.end_offset
    for number, count in enumerate(counts):
        data = bytearray(numbered_batch(number, records=count, size=size))
        assign_offset(data, base_offset=next_offset, partition_leader_epoch=0)
        batches.append(TrustedBatch(bytes(data), count, peek(data).max_timestamp))
        next_offset = Offset(next_offset + count)
    return batches


@given(
    runs=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=9), min_size=1, max_size=4),
    size=st.integers(0, 250),
    segment_bytes=st.sampled_from(["1500", "5000", "100000"]),
    timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
)
@settings(max_examples=40)
def test_one_write_of_several_batches_equals_single_appends(
    runs: list[list[int]], size: int, segment_bytes: str, timestamp_type: str
) -> None:
    configs = {
        "internal.segment.bytes": segment_bytes,
        "index.interval.bytes": "200",
        "message.timestamp.type": timestamp_type,
    }
    disks = MemoryDisk(), MemoryDisk()
    with open_log(disks[0], configs) as batched, open_log(disks[1], configs) as single:
        for counts in runs:
            batches = trusted_batches_for(batched, counts, size)

            errors = batched.append_trusted_batches(batches, NOW)

            assert [*errors] == [None] * len(counts)
            for batch in batches:
                single.append_trusted(batch.data, NOW)
        assert read_all(batched) == read_all(single)
        assert batched.find_max_timestamp() == single.find_max_timestamp()
    files = [
        {name: disk.open(f"{TOPIC}-0/{name}").size() for name in disk.list(f"{TOPIC}-0")}
        for disk in disks
    ]
    assert files[0] == files[1]


def test_only_the_too_large_batch_of_several_is_rejected(tmp_path: Path) -> None:
    with open_log(tmp_path, {"max.message.bytes": "600"}) as log:
        small, _, last = trusted_batches_for(log, [1, 1, 1], 20)
        (large,) = trusted_batches_for(log, [1], 800)

        errors = log.append_trusted_batches([small, large, last], NOW)

        first, rejected, third = errors
        assert (first, third) == (None, None)
        assert isinstance(rejected, RequestRejected)
        assert rejected.code is ErrorCode.MESSAGE_TOO_LARGE
        assert [each.base_offset for each in headers_of(read_all(log))] == [0, 1]


def test_append_assigns_the_next_offset_and_the_leader_epoch(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(numbered_batch(0, records=3), NOW)

        appended = log.append(numbered_batch(1, records=2), NOW)

        assert appended == Appended(
            base_offset=Offset(3),
            last_offset=Offset(4),
            append_ms=Millis(-1),
            start_offset=Offset(0),
            is_duplicate=False,
        )
        assert log.end_offset == 5
        header = headers_of(read_all(log))[1]
        assert header.base_offset == 3
        assert header.partition_leader_epoch == 0


def test_append_changes_only_offset_and_leader_epoch(tmp_path: Path) -> None:
    sent = new_batch(new_record(), new_record(), codec=Codec.LZ4)
    with open_log(tmp_path) as log:
        log.append(numbered_batch(0), NOW)
        log.append(sent, NOW)

        kept = log.read(Offset(1), 10_000, at_least_one=True)

        assert kept[8:12] == sent[8:12]
        assert kept[16:] == sent[16:]


def test_log_append_time_replaces_the_producer_timestamp(tmp_path: Path) -> None:
    with open_log(tmp_path, {"message.timestamp.type": "LogAppendTime"}) as log:
        old = Millis(5)

        appended = log.append(new_batch(new_record(timestamp=old)), NOW)

        assert appended.append_ms == NOW
        kept = read_all(log)
        assert peek(kept).timestamp_type is TimestampType.LOG_APPEND_TIME
        assert [record.timestamp for record in records_of(kept)] == [NOW]


def test_log_append_time_flag_from_a_producer_is_cleared(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        with_flag = encode(NewBatch(records=(new_record(),), log_append_time=NOW))

        appended = log.append(with_flag, Millis(NOW + 7))

        assert appended.append_ms == -1
        assert peek(read_all(log)).timestamp_type is TimestampType.CREATE_TIME


def test_all_invalid_records_are_reported(tmp_path: Path) -> None:
    with open_log(tmp_path, {"cleanup.policy": "compact"}) as log:
        batch = new_batch(new_record(key=None), new_record(), new_record(key=None))

        with pytest.raises(InvalidRecords) as rejected:
            log.append(batch, NOW)

        assert list(rejected.value.faults) == [0, 2]


def test_trusted_batches_may_be_control_batches(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append_trusted(marker_batch(3, is_commit=True), NOW)

        assert headers_of(read_all(log))[0].is_control


def change(data: bytes, layout: str, at: int, number: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, number)
    return bytes(changed)


def update_crc(data: bytes) -> bytes:
    return change(data, ">I", 17, checksum(data[21:]))


BATCH = new_batch(new_record(), new_record())
TOO_FAR_AHEAD = NOW + 3_600_001

INVALID = {
    "no bytes": (b"", {}, ErrorCode.INVALID_RECORD),
    "half a header": (BATCH[:40], {}, ErrorCode.INVALID_RECORD),
    "half a batch": (BATCH[:-1], {}, ErrorCode.INVALID_RECORD),
    "two batches": (BATCH + BATCH, {}, ErrorCode.INVALID_RECORD),
    "a trailing byte": (BATCH + b"x", {}, ErrorCode.INVALID_RECORD),
    "magic 1": (change(BATCH, ">b", 16, 1), {}, ErrorCode.INVALID_RECORD),
    "a flipped bit": (BATCH[:-1] + b"\x01", {}, ErrorCode.CORRUPT_MESSAGE),
    "a wrong record count": (change(BATCH, ">i", 57, 9), {}, ErrorCode.CORRUPT_MESSAGE),
    "a wrong length": (change(BATCH, ">i", 8, 3), {}, ErrorCode.CORRUPT_MESSAGE),
    "too many records": (update_crc(change(BATCH, ">i", 57, 9)), {}, ErrorCode.INVALID_RECORD),
    "fewer records": (update_crc(change(BATCH, ">i", 57, 1)), {}, ErrorCode.INVALID_RECORD),
    "no records": (update_crc(change(BATCH, ">i", 57, 0)), {}, ErrorCode.INVALID_RECORD),
    "an unknown codec": (update_crc(change(BATCH, ">h", 21, 7)), {}, ErrorCode.INVALID_RECORD),
    "a base offset": (change(BATCH, ">q", 0, 5), {}, ErrorCode.INVALID_RECORD),
    "a control batch": (marker_batch(1, is_commit=True), {}, ErrorCode.INVALID_RECORD),
    "a producer without sequence": (
        new_batch(producer_id=1, producer_epoch=0),
        {},
        ErrorCode.INVALID_RECORD,
    ),
    "a producer without epoch": (
        new_batch(producer_id=1, base_sequence=0),
        {},
        ErrorCode.INVALID_RECORD,
    ),
    "LogAppendTime set by a producer": (
        encode(NewBatch(records=(new_record(),), log_append_time=NOW)),
        {"message.timestamp.type": "LogAppendTime"},
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "the far future": (
        new_batch(new_record(timestamp=TOO_FAR_AHEAD)),
        {},
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "the distant past": (
        new_batch(new_record(), new_record(timestamp=NOW - 11)),
        {"message.timestamp.before.max.ms": "10"},
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "no key": (
        new_batch(new_record(), new_record(key=None)),
        {"cleanup.policy": "compact"},
        ErrorCode.INVALID_RECORD,
    ),
    "too large": (BATCH, {"max.message.bytes": str(len(BATCH) - 1)}, ErrorCode.MESSAGE_TOO_LARGE),
    "too large for a segment": (
        BATCH,
        {"internal.segment.bytes": str(len(BATCH) - 1)},
        ErrorCode.RECORD_LIST_TOO_LARGE,
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_batch_is_rejected(case: str, tmp_path: Path) -> None:
    data, topic_settings, code = INVALID[case]
    with open_log(tmp_path, topic_settings) as log:
        with pytest.raises(RequestRejected) as rejected:
            log.append(data, NOW)

        assert rejected.value.code is code
        assert (log.end_offset, log.size_bytes) == (0, 0)


VALID = {
    "as large as allowed": (BATCH, {"max.message.bytes": str(len(BATCH))}),
    "as large as a segment": (BATCH, {"internal.segment.bytes": str(len(BATCH))}),
    "an hour ahead": (new_batch(new_record(timestamp=TOO_FAR_AHEAD - 1)), {}),
    "no timestamp": (new_batch(new_record(timestamp=-1)), {}),
    "no timestamp with a limit for old ones": (
        new_batch(new_record(timestamp=-1)),
        {"message.timestamp.before.max.ms": "10"},
    ),
    "any time under LogAppendTime": (
        new_batch(new_record(timestamp=TOO_FAR_AHEAD)),
        {"message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": "10"},
    ),
    "a tombstone": (new_batch(new_record(value=None)), {"cleanup.policy": "compact"}),
}


@pytest.mark.parametrize("case", VALID)
def test_valid_edge_case_is_appended(case: str, tmp_path: Path) -> None:
    data, topic_settings = VALID[case]
    with open_log(tmp_path, topic_settings) as log:
        log.append(data, NOW)

        assert log.end_offset == peek(data).record_count


def test_size_of_trusted_batches_is_checked(tmp_path: Path) -> None:
    with open_log(tmp_path, {"max.message.bytes": "100"}) as log:
        with pytest.raises(RequestRejected) as rejected:
            log.append_trusted(numbered_batch(0, size=100), NOW)

        assert rejected.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_appended_records_can_be_decoded(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(new_batch(new_record("a", "1"), new_record("b", None)), NOW)

        assert records_of(read_all(log)) == [
            Record(offset=Offset(0), timestamp=NOW, key=b"a", value=b"1"),
            Record(offset=Offset(1), timestamp=NOW, key=b"b", value=None),
        ]
