"""Recovery after a crash: invalid tails are truncated, indexes are rebuilt."""

import copy
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.index import OFFSET_ENTRY
from kohort.log.repair import RepairKind
from kohort.types import Offset
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    COMPACTED,
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    TOPIC_ID,
    file_names,
    get_log,
    headers_of,
    latest_of,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    open_log,
    open_with_repairs,
    read_all,
)

DIRECTORY = f"{TOPIC}-0"
FIRST = f"{DIRECTORY}/{0:020d}.log"
SIZE = len(numbered_batch(0))
SYNCED = 4
WRITTEN = 7


def disk_after_kill(settings: dict[str, str] | None = None) -> MemoryDisk:
    """SYNCED batches are synced and checkpointed, the rest only written; no clean shutdown."""
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, settings or {})
    for number in range(SYNCED):
        log.append(numbered_batch(number), NOW)
    for each in catalog.take_pending_syncs():
        each.sync()
    catalog.clean(NOW)
    for number in range(SYNCED, WRITTEN):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    return disk


def offsets(data: bytes) -> list[int]:
    return [header.base_offset for header in headers_of(data)]


def test_tail_truncated_at_any_byte_keeps_whole_batches() -> None:
    prepared = disk_after_kill()
    intact = bytes(prepared.content(FIRST))
    for size in range(SYNCED * SIZE, WRITTEN * SIZE + 1):
        disk = copy.deepcopy(prepared)
        del disk.content(FIRST)[size:]

        catalog, repairs = open_with_repairs(disk)

        log = get_log(catalog)
        whole = size // SIZE
        assert read_all(log) == intact[: whole * SIZE]
        assert log.end_offset == whole
        assert sum(each.bytes_truncated for each in repairs) == size % SIZE
        assert log.append(numbered_batch(9), NOW).base_offset == whole
        catalog.close(NOW)
        with open_log(disk) as log:
            assert offsets(read_all(log)) == [*range(whole + 1)]


@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_log_is_truncated_before_a_corrupt_batch(bit: int) -> None:
    prepared = disk_after_kill()
    intact = bytes(prepared.content(FIRST))
    for at in range(SYNCED * SIZE, WRITTEN * SIZE):
        disk = copy.deepcopy(prepared)
        disk.content(FIRST)[at] ^= bit

        catalog, repairs = open_with_repairs(disk)

        log = get_log(catalog)
        whole = at // SIZE
        assert read_all(log) == intact[: whole * SIZE], at
        assert [(each.path, each.position, each.bytes_truncated) for each in repairs] == [
            (FIRST, whole * SIZE, (WRITTEN - whole) * SIZE)
        ]
        assert log.append(numbered_batch(9), NOW).base_offset == whole


def test_zeros_at_the_end_are_truncated() -> None:
    """Some file systems leave zeros after an unfinished write."""
    disk = disk_after_kill()
    intact = bytes(disk.content(FIRST))
    disk.content(FIRST).extend(bytes(5000))

    catalog, repairs = open_with_repairs(disk)

    assert read_all(get_log(catalog)) == intact
    assert [each.bytes_truncated for each in repairs] == [5000]


def test_valid_tail_needs_no_repair() -> None:
    disk = disk_after_kill()
    intact = bytes(disk.content(FIRST))

    catalog, repairs = open_with_repairs(disk)

    assert read_all(get_log(catalog)) == intact
    assert repairs == ()


def test_recovery_syncs_the_tail() -> None:
    """Consumers can read it now, so a second crash must not lose it."""
    disk = disk_after_kill()
    intact = bytes(disk.content(FIRST))
    open_catalog(disk)

    disk.power_off()

    assert read_all(get_log(open_catalog(disk))) == intact


def test_batches_before_the_recovery_point_are_not_checked() -> None:
    """Consumers detect corruption of old records; the log is not truncated there."""
    disk = disk_after_kill()
    disk.content(FIRST)[2 * SIZE - 1] ^= 1

    catalog, repairs = open_with_repairs(disk)

    assert get_log(catalog).end_offset == WRITTEN
    assert repairs == ()


def test_missing_synced_records_are_reported() -> None:
    disk = disk_after_kill()
    del disk.content(FIRST)[2 * SIZE :]

    catalog, (refused,) = open_with_repairs(disk)

    assert get_log(catalog).is_refused
    assert refused.reason.startswith("offsets 2 to 3 are missing")


def test_without_a_recovery_point_every_batch_is_checked() -> None:
    disk = disk_after_kill()
    disk.remove("recovery-point-offset-checkpoint")
    disk.content(FIRST)[2 * SIZE - 1] ^= 1

    catalog, repairs = open_with_repairs(disk)

    assert get_log(catalog).end_offset == 1
    assert repairs[0].position == SIZE
    assert "crc" in repairs[0].reason


def test_gaps_from_compaction_are_accepted() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, COMPACTED)
    log.append(new_batch(new_record("first", "1")), NOW)
    catalog.clean(NOW)
    for number in range(60):
        log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(50))), NOW)
    expected = latest_of(log)
    assert log.clean(NOW).compacted is not None
    disk.kill()

    catalog, repairs = open_with_repairs(disk)

    assert repairs == ()
    assert latest_of(get_log(catalog)) == expected


def test_segments_after_a_truncated_one_are_removed() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk), SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    segments = sorted(name for name in disk.list(DIRECTORY) if name.endswith(".log"))
    disk.content(f"{DIRECTORY}/{segments[1]}")[-1] ^= 1

    catalog, repairs = open_with_repairs(disk)

    log = get_log(catalog)
    assert log.end_offset == int(segments[2][:20]) - 1
    assert offsets(read_all(log)) == [*range(log.end_offset)]
    assert [each.path.rpartition("/")[2] for each in repairs] == segments[1:]
    assert sorted(name for name in disk.list(DIRECTORY) if name.endswith(".log")) == segments[:2]
    assert log.append(numbered_batch(0), NOW).base_offset == log.end_offset - 1


def test_segments_after_a_gap_are_removed() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk), SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    segments = sorted(name for name in disk.list(DIRECTORY) if name.endswith(".log"))
    del disk.content(f"{DIRECTORY}/{segments[1]}")[-SIZE:]

    catalog, _ = open_with_repairs(disk)

    log = get_log(catalog)
    assert log.end_offset == int(segments[2][:20]) - 1
    assert offsets(read_all(log)) == [*range(log.end_offset)]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("ending", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "short", "odd", "zeros", "long"])
def test_invalid_indexes_are_rebuilt(
    is_clean: bool,  # noqa: FBT001 - pytest gives parameters by name
    ending: str,
    damage: str,
) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    expected = read_all(log)
    catalog.clean(NOW)
    log.append(numbered_batch(30), NOW)
    expected = read_all(log)
    if is_clean:
        catalog.close(NOW)
    else:
        disk.kill()
    # After a clean shutdown only the size of indexes is checked.
    names = [name for name in disk.list(DIRECTORY) if name.endswith(ending)]
    last = max(names)
    for name in names:
        path = f"{DIRECTORY}/{name}"
        content = disk.content(path)
        if damage == "missing":
            disk.remove(path)
        elif damage == "odd":
            content.extend(b"xyz")
        elif name == last and damage == "short":
            content.clear()
        elif name == last and not is_clean:
            content[:] = bytes(len(content)) if damage == "zeros" else content * 2

    with open_log(disk) as log:
        assert read_all(log) == expected
        for offset in range(31):
            assert offsets(log.read(Offset(offset), 1, at_least_one=True)) == [offset]
            found = log.find_by_timestamp(headers_of(expected)[offset].max_timestamp)
            assert found is not None
            assert found.offset == offset


def test_unsynced_sealed_segment_without_indexes_is_truncated() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk), SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    content = disk.content(FIRST)
    content[-SIZE:] = bytes(SIZE)
    kept = len(content) // SIZE - 1
    for ending in (".index", ".timeindex"):
        disk.remove(FIRST.replace(".log", ending))

    with open_log(disk) as log:
        assert log.end_offset == kept
        assert offsets(read_all(log)) == [*range(kept)]


def test_rebuilt_index_uses_the_index_interval() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk), {"index.interval.bytes": f"{10 * SIZE}"})
    for number in range(100):
        log.append(numbered_batch(number), NOW)
    disk.kill()

    catalog, _ = open_with_repairs(disk)
    catalog.close(NOW)

    entries = len(disk.content(FIRST.replace(".log", ".index"))) // OFFSET_ENTRY.size
    assert entries == (100 - 1) // 11


def test_indexes_written_after_the_last_checkpoint_are_rebuilt() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    log.append(numbered_batch(0), NOW)
    number = 1
    # Everything is synced and checkpointed just before the roll.
    while len([name for name in disk.list(DIRECTORY) if name.endswith(".log")]) == 1:
        for each in catalog.take_pending_syncs():
            each.sync()
        catalog.clean(NOW)
        log.append(numbered_batch(number), NOW)
        number += 1
    for each in catalog.take_pending_syncs():
        each.sync()
    disk.kill()
    times = disk.content(FIRST.replace(".log", ".timeindex"))
    times[:] = bytes(12)

    with open_log(disk) as log:
        log.clean(NOW)

        assert log.start_offset == 0
        assert offsets(read_all(log)) == [*range(number)]


def test_indexes_without_a_log_file_are_removed(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(numbered_batch(0), NOW)
    directory = tmp_path / DIRECTORY
    for name in ("00000000000000000077.index", "00000000000000000077.timeindex"):
        (directory / name).write_bytes(b"x" * 24)
    (directory / "00000000000000000055.log.deleted").write_bytes(b"x")

    with open_log(tmp_path) as log:
        assert log.end_offset == 1
    assert [name for name in file_names(directory, "") if "77" in name or "55" in name] == []


def test_log_that_ends_before_its_start_offset_is_replaced_by_an_empty_one() -> None:
    disk = disk_after_kill()
    log_disk = copy.deepcopy(disk)
    catalog = open_catalog(log_disk)
    get_log(catalog).delete_before(Offset(6))
    log_disk.kill()
    del log_disk.content(FIRST)[3 * SIZE :]

    catalog, repairs = open_with_repairs(log_disk)

    log = get_log(catalog)
    assert (log.start_offset, log.end_offset) == (6, 6)
    assert any(each.bytes_truncated == 3 * SIZE for each in repairs)
    assert log.append(numbered_batch(0), NOW).base_offset == 6


def test_clean_start_does_not_read_sealed_segments(tmp_path: Path) -> None:
    """Their content is overwritten here, and the start does not notice."""
    with open_log(tmp_path, SMALL_SEGMENTS) as log:
        for number in range(200):
            log.append(numbered_batch(number), NOW)
    sealed = sorted((tmp_path / DIRECTORY).glob("*.log"))[:-1]
    for path in sealed:
        path.write_bytes(b"\xff" * path.stat().st_size)

    catalog, repairs = open_with_repairs(tmp_path)

    assert len(sealed) > 10
    assert repairs == ()
    assert get_log(catalog).end_offset == 200
    catalog.close(NOW)


def test_file_changed_after_a_clean_shutdown_is_recovered() -> None:
    disk = MemoryDisk()
    with open_log(disk) as log:
        for number in range(5):
            log.append(numbered_batch(number), NOW)
    disk.content(FIRST).extend(b"garbage")

    catalog, repairs = open_with_repairs(disk)

    assert get_log(catalog).end_offset == 5
    assert [each.bytes_truncated for each in repairs] == [7]


def test_clean_shutdown_marker_is_used_once() -> None:
    disk = MemoryDisk()
    with open_log(disk) as log:
        log.append(numbered_batch(0), NOW)
    assert ".kafka_cleanshutdown" in disk.list("")

    open_catalog(disk)

    assert ".kafka_cleanshutdown" not in disk.list("")
    disk.power_off()
    assert ".kafka_cleanshutdown" not in disk.list("")
    assert get_log(open_catalog(disk)).end_offset == 1


def test_log_truncated_at_the_last_index_entry_is_recovered() -> None:
    disk = MemoryDisk()
    with open_log(disk, {"index.interval.bytes": f"{3 * SIZE}"}) as log:
        for number in range(20):
            log.append(numbered_batch(number), NOW)
    entries = disk.content(FIRST.replace(".log", ".index"))
    *_, (_, position) = OFFSET_ENTRY.iter_unpack(bytes(entries))
    del disk.content(FIRST)[position:]

    catalog, repairs = Catalog.open(disk, NOW, accepted_losses={DIRECTORY})

    assert repairs[-1].kind is RepairKind.DATA_LOSS_ACCEPTED
    log = get_log(catalog)
    assert offsets(read_all(log)) == [*range(position // SIZE)]
    assert log.append(numbered_batch(9), NOW).base_offset == 20


def test_missing_partition_directory_is_created() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {})
    catalog.close(NOW)
    assert f"{TOPIC}-1" not in disk.list("")

    catalog, _ = Catalog.open(disk, NOW)

    log = catalog.partition(TOPIC, 1)
    assert log is not None
    assert log.append(numbered_batch(0), NOW).base_offset == 0
