"""Finding by time: the first record at or after a moment, and the latest of all."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log.lookup import Found
from kohort.types import Millis, Offset
from tests.log.disks import ForgetfulDisk
from tests.log.logs import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    new_batch,
    new_record,
    opened,
    read_all,
    records_of,
)

TIMES = st.lists(
    st.lists(st.integers(0, 60).map(lambda each: NOW + each), min_size=1, max_size=5),
    min_size=1,
    max_size=25,
)


@given(batches=TIMES, segment=st.integers(400, 2000), interval=st.integers(0, 400))
@settings(max_examples=30)
def test_the_first_record_that_is_not_older_is_found(
    batches: list[list[int]], segment: int, interval: int
) -> None:
    topic_settings = {"internal.segment.bytes": str(segment), "index.interval.bytes": str(interval)}
    disk = ForgetfulDisk()
    with opened(disk, topic_settings) as log:
        for times in batches:
            log.append(new_batch(*(new_record(timestamp=each) for each in times)), NOW)
        log.delete_before(Offset(len(batches) // 3))
    with opened(disk) as log:
        records = [each for each in records_of(read_all(log)) if each.offset >= log.start_offset]

        for moment in range(NOW - 1, NOW + 62):
            found = log.find_by_time(Millis(moment))

            expected = next((each for each in records if each.timestamp >= moment), None)
            assert (found and found.offset) == (expected and expected.offset)
            assert (found and found.timestamp) == (expected and expected.timestamp)


@given(batches=TIMES)
@settings(max_examples=20)
def test_the_first_of_the_latest_records_is_found(batches: list[list[int]]) -> None:
    with opened(ForgetfulDisk(), SMALL_SEGMENTS) as log:
        for times in batches:
            log.append(new_batch(*(new_record(timestamp=each) for each in times)), NOW)
        records = records_of(read_all(log))
        latest = max(records, key=lambda record: record.timestamp)

        assert log.find_latest_time() == Found(
            offset=latest.offset, timestamp=latest.timestamp, leader_epoch=0
        )


def test_under_log_append_time_the_last_record_is_the_latest() -> None:
    with opened(ForgetfulDisk(), {"message.timestamp.type": "LogAppendTime"}) as log:
        log.append(new_batch(new_record(), new_record()), NOW)

        assert log.find_latest_time() == Found(offset=Offset(1), timestamp=NOW, leader_epoch=0)


def test_where_there_is_nothing_nothing_is_found() -> None:
    with opened(ForgetfulDisk()) as log:
        assert log.find_by_time(Millis(0)) is None
        assert log.find_latest_time() is None

        log.append(new_batch(new_record(timestamp=-1)), NOW)

        assert log.find_by_time(Millis(0)) is None
        assert log.find_latest_time() is None


def test_a_deleted_record_is_not_the_latest() -> None:
    with opened(ForgetfulDisk()) as log:
        log.append(new_batch(new_record(timestamp=NOW)), NOW)
        log.delete_before(Offset(1))

        assert log.find_latest_time() is None


@pytest.mark.parametrize("ending", ["index", "timeindex"])
def test_index_entries_are_what_kafka_would_write(ending: str, tmp_path: Path) -> None:
    """Each points at a batch, by its last offset; the last time is there though nothing follows."""
    topic_settings = {"index.interval.bytes": "100"}
    with opened(tmp_path, topic_settings) as log:
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


def test_times_are_found_again_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append(new_batch(new_record(timestamp=NOW + 7)), NOW)

    with opened(tmp_path) as log:
        assert log.find_by_time(Millis(NOW + 7)) is not None
        assert log.find_by_time(Millis(NOW + 8)) is None
