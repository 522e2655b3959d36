"""Retention: old segments go by age, by size, and by request; the start offset says so."""

from pathlib import Path

import pytest

from kohort.log.errors import Refused
from kohort.log.retention import Candidate, count_removable
from kohort.log.settings import parse_settings
from kohort.types import ErrorCode, Millis, Offset
from tests.log.disks import ForgetfulDisk
from tests.log.logs import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    file_names,
    get_log,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    opened,
    read_all,
    records_of,
)

HOUR = 3_600_000

# Segments of ten bytes and ten offsets each, an hour apart; the last one is the newest.
SEGMENTS = [
    Candidate(base_offset=Offset(10 * n), size=10, latest_ms=Millis(NOW - (4 - n) * HOUR))
    for n in range(4)
]
EMPTY = Candidate(base_offset=Offset(40), size=0, latest_ms=Millis(0))


def removable(
    settings: dict[str, str], segments: list[Candidate] = SEGMENTS, start: int = 0
) -> int:
    return count_removable(segments, parse_settings(settings), Offset(start), NOW)


@pytest.mark.parametrize(
    ("retention", "expected"),
    [(5 * HOUR, 0), (4 * HOUR, 0), (4 * HOUR - 1, 1), (2 * HOUR - 1, 3), (HOUR - 1, 4), (-1, 0)],
)
def test_segments_go_when_their_latest_record_is_too_old(retention: int, expected: int) -> None:
    assert removable({"retention.ms": str(retention)}) == expected


@pytest.mark.parametrize(
    ("retention", "expected"), [(40, 0), (31, 0), (30, 1), (15, 2), (10, 3), (0, 4), (-1, 0)]
)
def test_segments_go_while_the_log_stays_as_large_as_it_may_be(
    retention: int, expected: int
) -> None:
    assert removable({"retention.bytes": str(retention)}) == expected


def test_an_empty_last_segment_stays() -> None:
    settings = {"retention.ms": "0", "retention.bytes": "0"}

    assert removable(settings, [*SEGMENTS, EMPTY]) == 4
    assert removable(settings, [EMPTY]) == 0


@pytest.mark.parametrize(("start", "expected"), [(0, 0), (9, 0), (10, 1), (29, 2), (39, 3)])
def test_segments_before_the_start_go_whatever_the_policy(start: int, expected: int) -> None:
    for policy in ("delete", "compact", ""):
        assert removable({"cleanup.policy": policy}, start=start) == expected


def test_a_compacted_topic_keeps_what_is_old() -> None:
    assert removable({"cleanup.policy": "compact", "retention.ms": "1"}) == 0
    assert removable({"cleanup.policy": "compact,delete", "retention.ms": "1"}) == 4


def test_one_young_segment_protects_those_after_it() -> None:
    young = Candidate(base_offset=Offset(0), size=10, latest_ms=NOW)

    assert removable({"retention.ms": "1000"}, [young, *SEGMENTS[1:]]) == 0


def test_what_is_too_old_is_gone_for_readers_and_from_the_disk(tmp_path: Path) -> None:
    with opened(tmp_path, {**SMALL_SEGMENTS, "retention.ms": "1000"}) as log:
        for number in range(30):
            log.append(numbered_batch(number), NOW)
        size = log.size_bytes

        cleaned = log.clean(Millis(NOW + 1150))

        assert cleaned.segments_removed == 1
        assert cleaned.bytes_removed == size - log.size_bytes
        assert cleaned.start_offset == log.start_offset == records_of(read_all(log))[0].offset
        assert file_names(tmp_path / f"{TOPIC}-0")[0] == f"{log.start_offset:020d}.log"
        with pytest.raises(Refused):
            log.read(Offset(0), 1, at_least_one=True)


def test_a_log_that_is_too_old_altogether_goes_on_empty() -> None:
    disk = ForgetfulDisk()
    with opened(disk, {"retention.ms": "1000"}) as log:
        log.append(numbered_batch(0, records=3), NOW)

        log.clean(Millis(NOW + 5000))

        assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 3, 0)
    with opened(disk) as log:
        assert (log.start_offset, log.end_offset) == (3, 3)
        assert log.append(numbered_batch(1), NOW).base_offset == 3


def test_records_without_a_time_are_no_older_than_those_after_them() -> None:
    with opened(ForgetfulDisk(), {**SMALL_SEGMENTS, "retention.ms": "1000"}) as log:
        timeless = new_batch(new_record(value="v" * 900, timestamp=-1))
        log.append(timeless, NOW)
        log.append(new_batch(new_record(value="v" * 900)), NOW)
        log.append(timeless, NOW)

        assert log.clean(Millis(NOW + 1000)).segments_removed == 0
        assert log.clean(Millis(NOW + 1001)).segments_removed == 3


def test_deleted_records_are_gone_for_readers() -> None:
    with opened(ForgetfulDisk()) as log:
        log.append(numbered_batch(0, records=5), NOW)

        assert log.delete_before(Offset(3)) == 3

        assert log.start_offset == 3
        assert log.append(numbered_batch(1), NOW).start_offset == 3
        with pytest.raises(Refused):
            log.read(Offset(2), 1, at_least_one=True)
        assert records_of(log.read(Offset(3), 1, at_least_one=True))[0].offset == 0


def test_whole_segments_before_the_start_are_removed(tmp_path: Path) -> None:
    with opened(tmp_path, SMALL_SEGMENTS) as log:
        for number in range(30):
            log.append(numbered_batch(number), NOW)
        bases = [int(name[:20]) for name in file_names(tmp_path / f"{TOPIC}-0")]

        log.delete_before(Offset(bases[2] + 1))

        assert [int(name[:20]) for name in file_names(tmp_path / f"{TOPIC}-0")] == bases[2:]


def test_the_start_never_moves_back_and_never_past_the_end() -> None:
    with opened(ForgetfulDisk()) as log:
        log.append(numbered_batch(0, records=5), NOW)
        log.delete_before(Offset(3))

        assert log.delete_before(Offset(1)) == 3
        assert log.delete_before(Offset(5)) == 5
        for offset in (-1, 6):
            with pytest.raises(Refused) as refused:
                log.delete_before(Offset(offset))
            assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_deletion_survives_a_power_failure() -> None:
    disk = ForgetfulDisk()
    with opened(disk) as log:
        log.append(numbered_batch(0, records=5), NOW)
    get_log(open_catalog(disk)).delete_before(Offset(3))
    disk.power_off()

    with opened(disk) as log:
        assert (log.start_offset, log.end_offset) == (3, 5)


def test_the_start_is_kept_in_kafkas_checkpoint(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append(numbered_batch(0, records=5), NOW)
        log.delete_before(Offset(3))

        checkpoint = (tmp_path / "log-start-offset-checkpoint").read_text()

        assert checkpoint == f"0\n1\n{TOPIC} 0 3\n"
