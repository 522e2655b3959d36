"""Crashes at every disk change of compaction, roll, retention and topic changes.

Each scenario is repeated with a crash before its first disk change, before its second, and so on
until it completes. Crash types differ in how much unsynced data survives.
"""

import copy
from collections.abc import Callable
from contextlib import suppress

import pytest

from kohort.log.catalog import Catalog
from kohort.log.partition import PartitionLog
from kohort.types import Millis, Offset, Topic, Uuid
from tests.log.faulty_disks import Crash, CrashingDisk, MemoryDisk
from tests.log.log_setup import (
    COMPACTED,
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    get_log,
    headers_of,
    latest_of,
    marker_batch,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    read_all,
)

Scenario = Callable[[Catalog], None]
Check = Callable[[Catalog, MemoryDisk], None]

# All unsynced data survives, none, or with a number as random seed, a random part.
PROCESS_KILLED, POWER_OFF = "killed", "power off"
every_crash_type = pytest.mark.parametrize("crash_type", [PROCESS_KILLED, POWER_OFF, 1, 2, 3])
CrashType = str | int


def crash_at_every_change(
    prepared: MemoryDisk, scenario: Scenario, check: Check, crash_type: CrashType
) -> int:
    """Check the log twice after each crash. Returns the number of crashes."""
    crash_at = 0
    while True:
        disk = copy.deepcopy(prepared)
        try:
            scenario(open_catalog(CrashingDisk(disk, crash_at)))
        except Crash:
            crash(disk, crash_type)
        else:
            return crash_at
        for _ in range(2):
            catalog = open_catalog(disk)
            check(catalog, disk)
            catalog.close(NOW)
        crash_at += 1


def crash(disk: MemoryDisk, crash_type: CrashType) -> None:
    if crash_type == PROCESS_KILLED:
        disk.kill()
    else:
        disk.power_off(crash_type if isinstance(crash_type, int) else None)


def check_segments(disk: MemoryDisk, directory: str) -> None:
    """The offset ranges of the segments do not overlap."""
    names = sorted(name for name in disk.list(directory) if name.endswith(".log"))
    end = 0
    for name in names:
        assert int(name[:20]) >= end
        for header in headers_of(bytes(disk.content(f"{directory}/{name}"))):
            assert header.base_offset >= end
            end = header.next_offset


def sync(log: PartitionLog) -> None:
    for each in log.take_pending_syncs():
        each.sync()


@every_crash_type
def test_crash_during_compaction_loses_no_records(crash_type: CrashType) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, {**COMPACTED, "internal.segment.bytes": "400"})
    transactional = new_batch(
        new_record("t", "aborted"), producer_id=1, producer_epoch=0, is_transactional=True
    )
    log.append(new_batch(new_record("t", "committed")), NOW)
    log.append_trusted(transactional, NOW)
    log.append_trusted(marker_batch(1, is_commit=False), NOW)
    for number in range(14):
        log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(80))), NOW)
    aborted = log.aborted_transactions(Offset(0), log.end_offset)
    expected = {key: text for key, text in latest_of(log).items() if key != b"t"}
    # Larger segments, so that compaction merges several into one.
    catalog.alter_settings(TOPIC, COMPACTED)
    catalog.close(NOW)

    def scenario(catalog: Catalog) -> None:
        assert get_log(catalog).clean(NOW).compacted is not None

    def check(catalog: Catalog, disk: MemoryDisk) -> None:
        log = get_log(catalog)
        check_segments(disk, f"{TOPIC}-0")
        found = latest_of(log)
        assert found.pop(b"t") in (b"aborted", b"committed")
        assert found == expected
        assert log.end_offset == 17
        assert log.aborted_transactions(Offset(0), log.end_offset) == aborted
        ends = [header.next_offset for header in headers_of(read_all(log))]
        assert ends == sorted(set(ends))

    assert crash_at_every_change(disk, scenario, check, crash_type) > 40


@every_crash_type
def test_crash_during_append_and_roll_keeps_synced_records(crash_type: CrashType) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    get_log(catalog, SMALL_SEGMENTS)
    catalog.close(NOW)
    synced = [0]

    def scenario(catalog: Catalog) -> None:
        log = get_log(catalog)
        synced[:] = [0]
        for number in range(20):
            log.append(
                new_batch(
                    new_record(f"k{number}", "v" * 40),
                    producer_id=1,
                    producer_epoch=0,
                    base_sequence=number,
                ),
                NOW,
            )
            if number % 3 == 2:
                for each in catalog.take_pending_syncs():
                    each.sync()
                synced[:] = [log.end_offset]
            if number % 8 == 7:
                catalog.clean(NOW)

    def check(catalog: Catalog, _: MemoryDisk) -> None:
        log = get_log(catalog)
        assert log.end_offset >= synced[0]
        offsets = [header.base_offset for header in headers_of(read_all(log))]
        assert offsets == [*range(log.end_offset)]
        if log.end_offset > 0:
            last = new_batch(
                new_record(f"k{log.end_offset - 1}", "v" * 40),
                producer_id=1,
                producer_epoch=0,
                base_sequence=log.end_offset - 1,
            )
            assert log.append(last, NOW).is_duplicate

    assert crash_at_every_change(disk, scenario, check, crash_type) > 40


@every_crash_type
def test_crash_during_retention_leaves_no_gap(crash_type: CrashType) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, {**SMALL_SEGMENTS, "retention.ms": "1000"})
    for number in range(40):
        log.append(numbered_batch(number), NOW)
    catalog.close(NOW)

    def scenario(catalog: Catalog) -> None:
        assert get_log(catalog).clean(Millis(NOW + 1250)).segments_removed > 1

    def check(catalog: Catalog, _: MemoryDisk) -> None:
        log = get_log(catalog)
        headers = headers_of(read_all(log))
        assert [header.base_offset for header in headers] == [*range(log.start_offset, 40)]
        assert log.end_offset == 40

    assert crash_at_every_change(disk, scenario, check, crash_type) > 3


OTHER = Topic("other")
FIRST_ID = Uuid(b"o" * 16)
SECOND_ID = Uuid(b"p" * 16)
NOTHING = (None, 0)

# The possible topic ids and partition counts, by the number of completed steps.
POSSIBLE = (
    (NOTHING, (FIRST_ID, 2)),
    ((FIRST_ID, 2), (FIRST_ID, 3)),
    ((FIRST_ID, 3), NOTHING),
    (NOTHING, (SECOND_ID, 2)),
    ((SECOND_ID, 2),),
    ((SECOND_ID, 2),),
)


@every_crash_type
def test_topic_changes_are_atomic(crash_type: CrashType) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog)
    log.append(numbered_batch(0), NOW)
    catalog.close(NOW)
    completed: list[str] = []

    def scenario(catalog: Catalog) -> None:
        completed.clear()
        catalog.create_topic(OTHER, FIRST_ID, 2, {})
        completed.append("created")
        other = catalog.partition(OTHER, 1)
        assert other is not None
        other.append(numbered_batch(0, records=9), NOW)
        sync(other)
        other.delete_before(Offset(5))
        catalog.add_partitions(OTHER, 3)
        completed.append("grown")
        catalog.delete_topic(OTHER)
        completed.append("deleted")
        catalog.create_topic(OTHER, SECOND_ID, 2, {})
        completed.append("created again")
        other = catalog.partition(OTHER, 1)
        assert other is not None
        other.append(numbered_batch(0), NOW)
        sync(other)
        completed.append("written again")
        catalog.clean(NOW)

    def check(catalog: Catalog, disk: MemoryDisk) -> None:
        assert get_log(catalog).end_offset == 1
        topic = catalog.find_topic(OTHER)
        count = topic.partition_count if topic else 0
        catalog.clean(NOW)
        directories = {name for name in disk.list("") if name.startswith(OTHER)}
        assert directories <= {f"{OTHER}-{each}" for each in range(count)}
        assert (topic.topic_id if topic else None, count) in POSSIBLE[len(completed)]
        if topic is not None and topic.topic_id == SECOND_ID:
            other = catalog.partition(OTHER, 1)
            assert other is not None
            assert other.start_offset == 0
            assert other.end_offset in ((1,) if "written again" in completed else (0, 1))

    assert crash_at_every_change(disk, scenario, check, crash_type) > 30


@every_crash_type
def test_crash_during_recovery(crash_type: CrashType) -> None:
    """A crash interrupts the segment replacement of compaction, then recovery at every step."""
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, COMPACTED)
    for number in range(24):
        log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(80))), NOW)
    expected = latest_of(log)
    catalog.close(NOW)
    counting = CrashingDisk(copy.deepcopy(disk))
    get_log(open_catalog(counting)).clean(NOW)

    for crash_at in range(counting.changes - 25, counting.changes, 3):
        interrupted = copy.deepcopy(disk)
        with suppress(Crash):
            get_log(open_catalog(CrashingDisk(interrupted, crash_at))).clean(NOW)
        interrupted.kill()

        def check(catalog: Catalog, _: MemoryDisk) -> None:
            assert latest_of(get_log(catalog)) == expected

        crash_at_every_change(interrupted, lambda _: None, check, crash_type)


def test_unknown_partition_directory_is_renamed_to_stray() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)
    catalog.close(NOW)
    disk.make_directory("lost-7")
    disk.make_directory("empty-1")
    file = disk.create(f"lost-7/{0:020d}.log")
    file.append(b"records")

    catalog, repairs = Catalog.open(disk, NOW)

    assert [each.path for each in repairs] == ["lost-7"]
    assert get_log(catalog).end_offset == 1
    names = disk.list("")
    assert "lost-7" not in names
    assert "empty-1" not in names
    assert disk.list(f"lost-7.{'00' * 16}-stray") == {f"{0:020d}.log": 7}
    assert TOPIC + "-0" in names
