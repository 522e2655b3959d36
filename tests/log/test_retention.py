"""Retention by age and size, DeleteRecords, and the log start offset."""

from pathlib import Path

import pytest

from kohort.log.errors import RequestRejected
from kohort.log.log_cleaner import RetentionCandidate, count_removable
from kohort.log.topic_config import parse_settings
from kohort.types import ErrorCode, Millis, Offset
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    TOPIC_ID,
    file_names,
    get_log,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    open_log,
    read_all,
    records_of,
)

HOUR = 3_600_000

# Segments of ten bytes and ten offsets each, an hour apart; the last one is the newest.
SEGMENTS = [
    RetentionCandidate(base_offset=Offset(10 * n), size=10, latest_ms=Millis(NOW - (4 - n) * HOUR))
    for n in range(4)
]
EMPTY = RetentionCandidate(base_offset=Offset(40), size=0, latest_ms=Millis(0))


def removable(
    settings: dict[str, str], segments: list[RetentionCandidate] = SEGMENTS, start: int = 0
) -> int:
    return count_removable(segments, parse_settings(settings), Offset(start), NOW)


@pytest.mark.parametrize(
    ("retention", "expected"),
    [(5 * HOUR, 0), (4 * HOUR, 0), (4 * HOUR - 1, 1), (2 * HOUR - 1, 3), (HOUR - 1, 4), (-1, 0)],
)
def test_segments_are_removed_by_age(retention: int, expected: int) -> None:
    assert removable({"retention.ms": str(retention)}) == expected


@pytest.mark.parametrize(
    ("retention", "expected"), [(40, 0), (31, 0), (30, 1), (15, 2), (10, 3), (0, 4), (-1, 0)]
)
def test_segments_are_removed_by_size(retention: int, expected: int) -> None:
    assert removable({"retention.bytes": str(retention)}) == expected


def test_empty_active_segment_is_kept() -> None:
    settings = {"retention.ms": "0", "retention.bytes": "0"}

    assert removable(settings, [*SEGMENTS, EMPTY]) == 4
    assert removable(settings, [EMPTY]) == 0


@pytest.mark.parametrize(("start", "expected"), [(0, 0), (9, 0), (10, 1), (29, 2), (39, 3)])
def test_segments_before_the_log_start_are_removed_with_any_policy(
    start: int, expected: int
) -> None:
    for policy in ("delete", "compact", ""):
        assert removable({"cleanup.policy": policy}, start=start) == expected


def test_retention_does_not_apply_to_compact_only_topics() -> None:
    assert removable({"cleanup.policy": "compact", "retention.ms": "1"}) == 0
    assert removable({"cleanup.policy": "compact,delete", "retention.ms": "1"}) == 4


def test_recent_segment_protects_later_ones() -> None:
    recent = RetentionCandidate(base_offset=Offset(0), size=10, latest_ms=NOW)

    assert removable({"retention.ms": "1000"}, [recent, *SEGMENTS[1:]]) == 0


def test_retention_removes_files_and_moves_the_log_start(tmp_path: Path) -> None:
    with open_log(tmp_path, {**SMALL_SEGMENTS, "retention.ms": "1000"}) as log:
        for number in range(30):
            log.append(numbered_batch(number), NOW)
        size = log.size_bytes

        cleaned = log.clean(Millis(NOW + 1150))

        assert cleaned.segments_removed == 1
        assert cleaned.bytes_removed == size - log.size_bytes
        assert cleaned.start_offset == log.start_offset == records_of(read_all(log))[0].offset
        assert file_names(tmp_path / f"{TOPIC}-0")[0] == f"{log.start_offset:020d}.log"
        with pytest.raises(RequestRejected):
            log.read(Offset(0), 1, at_least_one=True)


def test_retention_of_all_records_leaves_an_empty_log() -> None:
    disk = MemoryDisk()
    with open_log(disk, {"retention.ms": "1000"}) as log:
        log.append(numbered_batch(0, records=3), NOW)

        log.clean(Millis(NOW + 5000))

        assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 3, 0)
    with open_log(disk) as log:
        assert (log.start_offset, log.end_offset) == (3, 3)
        assert log.append(numbered_batch(1), NOW).base_offset == 3


def test_retention_stores_the_log_starts_of_many_partitions_at_once() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, 20, {**SMALL_SEGMENTS, "retention.ms": "0"})
    logs = [catalog.partition(TOPIC, number) for number in range(20)]
    for log in logs:
        assert log is not None
        log.append(numbered_batch(0, 3), NOW)
    written: list[str] = []
    write_atomically = disk.write_atomically

    def note(path: str, data: bytes) -> None:
        written.append(path)
        write_atomically(path, data)

    disk.write_atomically = note  # type: ignore[method-assign]  # counts the writes

    removed = catalog.clean(Millis(NOW + HOUR)).partitions

    assert len(removed) == 20
    assert written.count("log-start-offset-checkpoint") == 1


def test_segment_without_timestamps_gets_that_of_the_next() -> None:
    with open_log(MemoryDisk(), {**SMALL_SEGMENTS, "retention.ms": "1000"}) as log:
        without_timestamp = new_batch(new_record(value="v" * 900, timestamp=-1))
        log.append(without_timestamp, NOW)
        log.append(new_batch(new_record(value="v" * 900)), NOW)
        log.append(without_timestamp, NOW)

        assert log.clean(Millis(NOW + 1000)).segments_removed == 0
        assert log.clean(Millis(NOW + 1001)).segments_removed == 3


def test_deleted_records_cannot_be_read() -> None:
    with open_log(MemoryDisk()) as log:
        log.append(numbered_batch(0, records=5), NOW)

        assert log.delete_before(Offset(3)) == 3

        assert log.start_offset == 3
        assert log.append(numbered_batch(1), NOW).start_offset == 3
        with pytest.raises(RequestRejected):
            log.read(Offset(2), 1, at_least_one=True)
        assert records_of(log.read(Offset(3), 1, at_least_one=True))[0].offset == 0


def test_delete_records_removes_whole_segments(tmp_path: Path) -> None:
    with open_log(tmp_path, SMALL_SEGMENTS) as log:
        for number in range(30):
            log.append(numbered_batch(number), NOW)
        bases = [int(name[:20]) for name in file_names(tmp_path / f"{TOPIC}-0")]

        log.delete_before(Offset(bases[2] + 1))

        assert [int(name[:20]) for name in file_names(tmp_path / f"{TOPIC}-0")] == bases[2:]


def test_log_start_never_moves_back_or_beyond_the_log_end() -> None:
    with open_log(MemoryDisk()) as log:
        log.append(numbered_batch(0, records=5), NOW)
        log.delete_before(Offset(3))

        assert log.delete_before(Offset(1)) == 3
        assert log.delete_before(Offset(5)) == 5
        for offset in (-1, 6):
            with pytest.raises(RequestRejected) as rejected:
                log.delete_before(Offset(offset))
            assert rejected.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_deleted_records_stay_deleted_after_a_power_failure() -> None:
    disk = MemoryDisk()
    with open_log(disk) as log:
        log.append(numbered_batch(0, records=5), NOW)
    get_log(open_catalog(disk)).delete_before(Offset(3))
    disk.power_off()

    with open_log(disk) as log:
        assert (log.start_offset, log.end_offset) == (3, 5)


def test_log_start_offset_checkpoint_is_written(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(numbered_batch(0, records=5), NOW)
        log.delete_before(Offset(3))

        checkpoint = (tmp_path / "log-start-offset-checkpoint").read_text()

        assert checkpoint.startswith(f"0\n2\n{TOPIC} 0 3\n__kohort_checksum 0 ")
