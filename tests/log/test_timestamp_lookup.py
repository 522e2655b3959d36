"""Lookup by timestamp: the first record at or after a timestamp, and the maximum timestamp."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log.log_segments import TimestampAndOffset
from kohort.types import Millis, Offset
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    new_batch,
    new_record,
    open_log,
    read_all,
    records_of,
)

TIMESTAMPS = st.lists(
    st.lists(st.integers(0, 60).map(lambda each: NOW + each), min_size=1, max_size=5),
    min_size=1,
    max_size=25,
)


@given(batches=TIMESTAMPS, segment=st.integers(400, 2000), interval=st.integers(0, 400))
@settings(max_examples=30)
def test_find_by_timestamp_returns_the_first_record_at_or_after_it(
    batches: list[list[int]], segment: int, interval: int
) -> None:
    topic_settings = {"internal.segment.bytes": str(segment), "index.interval.bytes": str(interval)}
    disk = MemoryDisk()
    with open_log(disk, topic_settings) as log:
        for times in batches:
            log.append(new_batch(*(new_record(timestamp=each) for each in times)), NOW)
        log.delete_before(Offset(len(batches) // 3))
    with open_log(disk) as log:
        records = [each for each in records_of(read_all(log)) if each.offset >= log.start_offset]

        for timestamp in range(NOW - 1, NOW + 62):
            found = log.find_by_timestamp(Millis(timestamp))

            expected = next((each for each in records if each.timestamp >= timestamp), None)
            assert (found and found.offset) == (expected and expected.offset)
            assert (found and found.timestamp) == (expected and expected.timestamp)


@given(batches=TIMESTAMPS)
@settings(max_examples=20)
def test_find_max_timestamp_returns_the_first_such_record(batches: list[list[int]]) -> None:
    with open_log(MemoryDisk(), SMALL_SEGMENTS) as log:
        for times in batches:
            log.append(new_batch(*(new_record(timestamp=each) for each in times)), NOW)
        records = records_of(read_all(log))
        latest = max(records, key=lambda record: record.timestamp)

        assert log.find_max_timestamp() == TimestampAndOffset(
            offset=latest.offset, timestamp=latest.timestamp, leader_epoch=0
        )


def test_find_max_timestamp_under_log_append_time_returns_the_last_record() -> None:
    with open_log(MemoryDisk(), {"message.timestamp.type": "LogAppendTime"}) as log:
        log.append(new_batch(new_record(), new_record()), NOW)

        assert log.find_max_timestamp() == TimestampAndOffset(
            offset=Offset(1), timestamp=NOW, leader_epoch=0
        )


def test_lookup_without_timestamps_finds_nothing() -> None:
    with open_log(MemoryDisk()) as log:
        assert log.find_by_timestamp(Millis(0)) is None
        assert log.find_max_timestamp() is None

        log.append(new_batch(new_record(timestamp=-1)), NOW)

        assert log.find_by_timestamp(Millis(0)) is None
        assert log.find_max_timestamp() is None


def test_find_max_timestamp_ignores_deleted_records() -> None:
    with open_log(MemoryDisk()) as log:
        log.append(new_batch(new_record(timestamp=NOW)), NOW)
        log.delete_before(Offset(1))

        assert log.find_max_timestamp() is None


@pytest.mark.parametrize("ending", ["index", "timeindex"])
def test_index_entries_match_kafka(ending: str, tmp_path: Path) -> None:
    """Each entry has the last offset of a batch; the time index ends with the latest timestamp."""
    topic_settings = {"index.interval.bytes": "100"}
    with open_log(tmp_path, topic_settings) as log:
        for number in range(8):
            log.append(
                new_batch(*(new_record(timestamp=NOW + 5 * number + each) for each in range(2))),
                NOW,
            )
        size = log.size_bytes // 8

    data = (tmp_path / f"{TOPIC}-0" / f"{0:020d}.{ending}").read_bytes()
    if ending == "index":
        # A batch has 79 bytes: every second one is more than 100 away from the last entry.
        assert size == 79
        assert list(struct.iter_unpack(">ii", data)) == [(5, 158), (9, 316), (13, 474)]
    else:
        assert list(struct.iter_unpack(">qi", data)) == [
            (NOW + 11, 5),
            (NOW + 21, 9),
            (NOW + 31, 13),
            (NOW + 36, 15),
        ]


def test_find_by_timestamp_after_a_restart(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(new_batch(new_record(timestamp=NOW + 7)), NOW)

    with open_log(tmp_path) as log:
        assert log.find_by_timestamp(Millis(NOW + 7)) is not None
        assert log.find_by_timestamp(Millis(NOW + 8)) is None
