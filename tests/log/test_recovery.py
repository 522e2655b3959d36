"""Recovery: whatever is wrong with the tail, it is cut there and nowhere else."""

import copy
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.index import OFFSET_ENTRY
from kohort.types import Offset
from tests.log.disks import ForgetfulDisk
from tests.log.logs import (
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
    open_with_notes,
    opened,
    read_all,
)

DIRECTORY = f"{TOPIC}-0"
FIRST = f"{DIRECTORY}/{0:020d}.log"
SIZE = len(numbered_batch(0))
KEPT = 4
WRITTEN = 7


def killed_disk(settings: dict[str, str] | None = None) -> ForgetfulDisk:
    """Some batches that were synced and checkpointed, some that were only written, no close."""
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, settings or {})
    for number in range(KEPT):
        log.append(numbered_batch(number), NOW)
    for each in catalog.take_unsynced():
        each.sync()
    catalog.clean(NOW)
    for number in range(KEPT, WRITTEN):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    return disk


def offsets(data: bytes) -> list[int]:
    return [header.base_offset for header in headers_of(data)]


def test_a_tail_torn_at_any_byte_is_cut_to_whole_batches() -> None:
    prepared = killed_disk()
    intact = bytes(prepared.content(FIRST))
    for size in range(KEPT * SIZE, WRITTEN * SIZE + 1):
        disk = copy.deepcopy(prepared)
        del disk.content(FIRST)[size:]

        catalog, recovered = open_with_notes(disk)

        log = get_log(catalog)
        whole = size // SIZE
        assert read_all(log) == intact[: whole * SIZE]
        assert log.end_offset == whole
        assert sum(each.bytes_cut for each in recovered) == size % SIZE
        assert log.append(numbered_batch(9), NOW).base_offset == whole
        catalog.close(NOW)
        with opened(disk) as log:
            assert offsets(read_all(log)) == [*range(whole + 1)]


@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_a_tail_with_any_byte_changed_is_cut_before_that_batch(bit: int) -> None:
    prepared = killed_disk()
    intact = bytes(prepared.content(FIRST))
    for at in range(KEPT * SIZE, WRITTEN * SIZE):
        disk = copy.deepcopy(prepared)
        disk.content(FIRST)[at] ^= bit

        catalog, recovered = open_with_notes(disk)

        log = get_log(catalog)
        whole = at // SIZE
        assert read_all(log) == intact[: whole * SIZE], at
        assert [(each.path, each.position, each.bytes_cut) for each in recovered] == [
            (FIRST, whole * SIZE, (WRITTEN - whole) * SIZE)
        ]
        assert log.append(numbered_batch(9), NOW).base_offset == whole


def test_zeros_at_the_end_are_cut() -> None:
    """What some file systems leave of a write that was never finished."""
    disk = killed_disk()
    intact = bytes(disk.content(FIRST))
    disk.content(FIRST).extend(bytes(5000))

    catalog, recovered = open_with_notes(disk)

    assert read_all(get_log(catalog)) == intact
    assert [each.bytes_cut for each in recovered] == [5000]


def test_an_intact_tail_is_kept_without_a_word() -> None:
    disk = killed_disk()
    intact = bytes(disk.content(FIRST))

    catalog, recovered = open_with_notes(disk)

    assert read_all(get_log(catalog)) == intact
    assert recovered == ()


def test_what_recovery_kept_is_synced_then() -> None:
    """It will be read, so it must not vanish in the next crash."""
    disk = killed_disk()
    intact = bytes(disk.content(FIRST))
    open_catalog(disk)

    disk.power_off()

    assert read_all(get_log(open_catalog(disk))) == intact


def test_what_was_synced_is_not_even_looked_at() -> None:
    """A bit that rots in old records is for their readers to notice, not a reason to cut them."""
    disk = killed_disk()
    disk.content(FIRST)[2 * SIZE - 1] ^= 1

    catalog, recovered = open_with_notes(disk)

    assert get_log(catalog).end_offset == WRITTEN
    assert recovered == ()


def test_missing_records_that_were_synced_are_reported() -> None:
    disk = killed_disk()
    del disk.content(FIRST)[2 * SIZE :]

    catalog, recovered = open_with_notes(disk)

    assert get_log(catalog).end_offset == 2
    assert [each.reason for each in recovered] == ["offsets up to 4 were synced and are missing"]


def test_without_a_recovery_point_every_batch_is_checked() -> None:
    disk = killed_disk()
    disk.remove("recovery-point-offset-checkpoint")
    disk.content(FIRST)[2 * SIZE - 1] ^= 1

    catalog, recovered = open_with_notes(disk)

    assert get_log(catalog).end_offset == 1
    assert recovered[0].position == SIZE
    assert "crc" in recovered[0].reason


def test_gaps_that_compaction_left_are_no_reason_to_cut() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, COMPACTED)
    log.append(new_batch(new_record("first", "1")), NOW)
    catalog.clean(NOW)
    for number in range(60):
        log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(50))), NOW)
    expected = latest_of(log)
    assert log.clean(NOW).compacted is not None
    disk.kill()

    catalog, recovered = open_with_notes(disk)

    assert recovered == ()
    assert latest_of(get_log(catalog)) == expected


def test_segments_after_a_cut_go_with_it() -> None:
    disk = ForgetfulDisk()
    log = get_log(open_catalog(disk), SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    segments = sorted(name for name in disk.list(DIRECTORY) if name.endswith(".log"))
    disk.content(f"{DIRECTORY}/{segments[1]}")[-1] ^= 1

    catalog, recovered = open_with_notes(disk)

    log = get_log(catalog)
    assert log.end_offset == int(segments[2][:20]) - 1
    assert offsets(read_all(log)) == [*range(log.end_offset)]
    assert [each.path.rpartition("/")[2] for each in recovered] == segments[1:]
    assert sorted(name for name in disk.list(DIRECTORY) if name.endswith(".log")) == segments[:2]
    assert log.append(numbered_batch(0), NOW).base_offset == log.end_offset - 1


def test_a_segment_that_does_not_follow_is_cut() -> None:
    disk = ForgetfulDisk()
    log = get_log(open_catalog(disk), SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    segments = sorted(name for name in disk.list(DIRECTORY) if name.endswith(".log"))
    del disk.content(f"{DIRECTORY}/{segments[1]}")[-SIZE:]

    catalog, _ = open_with_notes(disk)

    log = get_log(catalog)
    assert log.end_offset == int(segments[2][:20]) - 1
    assert offsets(read_all(log)) == [*range(log.end_offset)]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("ending", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "short", "odd", "zeros", "long"])
def test_indexes_that_make_no_sense_are_made_again(
    is_clean: bool,  # noqa: FBT001 - pytest gives parameters by name
    ending: str,
    damage: str,
) -> None:
    disk = ForgetfulDisk()
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
    # After a clean stop the content of indexes is believed, but not their size.
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

    with opened(disk) as log:
        assert read_all(log) == expected
        for offset in range(31):
            assert offsets(log.read(Offset(offset), 1, at_least_one=True)) == [offset]
            found = log.find_by_time(headers_of(expected)[offset].max_timestamp)
            assert found is not None
            assert found.offset == offset


def test_a_segment_that_was_sealed_and_never_synced_may_be_torn_and_lack_its_indexes() -> None:
    disk = ForgetfulDisk()
    log = get_log(open_catalog(disk), SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    content = disk.content(FIRST)
    content[-SIZE:] = bytes(SIZE)
    kept = len(content) // SIZE - 1
    for ending in (".index", ".timeindex"):
        disk.remove(FIRST.replace(".log", ending))

    with opened(disk) as log:
        assert log.end_offset == kept
        assert offsets(read_all(log)) == [*range(kept)]


def test_an_index_that_is_made_again_has_entries_as_far_apart_as_the_first_time() -> None:
    disk = ForgetfulDisk()
    log = get_log(open_catalog(disk), {"index.interval.bytes": f"{10 * SIZE}"})
    for number in range(100):
        log.append(numbered_batch(number), NOW)
    disk.kill()

    catalog, _ = open_with_notes(disk)
    catalog.close(NOW)

    entries = len(disk.content(FIRST.replace(".log", ".index"))) // OFFSET_ENTRY.size
    assert entries == (100 - 1) // 11


def test_indexes_written_after_the_last_checkpoint_are_not_believed() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    number = 0
    # Everything is synced and noted just before the segment is sealed.
    while len([name for name in disk.list(DIRECTORY) if name.endswith(".log")]) == 1:
        for each in catalog.take_unsynced():
            each.sync()
        catalog.clean(NOW)
        log.append(numbered_batch(number), NOW)
        number += 1
    for each in catalog.take_unsynced():
        each.sync()
    disk.kill()
    times = disk.content(FIRST.replace(".log", ".timeindex"))
    times[:] = bytes(12)

    with opened(disk) as log:
        log.clean(NOW)

        assert log.start_offset == 0
        assert offsets(read_all(log)) == [*range(number)]


def test_leftovers_without_a_log_are_removed(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append(numbered_batch(0), NOW)
    directory = tmp_path / DIRECTORY
    for name in ("00000000000000000077.index", "00000000000000000077.timeindex"):
        (directory / name).write_bytes(b"x" * 24)
    (directory / "00000000000000000055.log.deleted").write_bytes(b"x")

    with opened(tmp_path) as log:
        assert log.end_offset == 1
    assert [name for name in file_names(directory, "") if "77" in name or "55" in name] == []


def test_a_log_that_ends_before_its_start_begins_anew() -> None:
    disk = killed_disk()
    log_disk = copy.deepcopy(disk)
    catalog = open_catalog(log_disk)
    get_log(catalog).delete_before(Offset(6))
    log_disk.kill()
    del log_disk.content(FIRST)[3 * SIZE :]

    catalog, recovered = open_with_notes(log_disk)

    log = get_log(catalog)
    assert (log.start_offset, log.end_offset) == (6, 6)
    assert any(each.bytes_cut == 3 * SIZE for each in recovered)
    assert log.append(numbered_batch(0), NOW).base_offset == 6


def test_a_clean_log_is_opened_without_reading_its_segments(tmp_path: Path) -> None:
    """Their content could be anything: nobody looks, until somebody reads."""
    with opened(tmp_path, SMALL_SEGMENTS) as log:
        for number in range(200):
            log.append(numbered_batch(number), NOW)
    sealed = sorted((tmp_path / DIRECTORY).glob("*.log"))[:-1]
    for path in sealed:
        path.write_bytes(b"\xff" * path.stat().st_size)

    catalog, recovered = open_with_notes(tmp_path)

    assert len(sealed) > 10
    assert recovered == ()
    assert get_log(catalog).end_offset == 200
    catalog.close(NOW)


def test_a_file_changed_after_a_clean_stop_is_looked_at_after_all() -> None:
    disk = ForgetfulDisk()
    with opened(disk) as log:
        for number in range(5):
            log.append(numbered_batch(number), NOW)
    disk.content(FIRST).extend(b"garbage")

    catalog, recovered = open_with_notes(disk)

    assert get_log(catalog).end_offset == 5
    assert [each.bytes_cut for each in recovered] == [7]


def test_the_mark_of_a_clean_stop_holds_for_one_start() -> None:
    disk = ForgetfulDisk()
    with opened(disk) as log:
        log.append(numbered_batch(0), NOW)
    assert ".kafka_cleanshutdown" in disk.list("")

    open_catalog(disk)

    assert ".kafka_cleanshutdown" not in disk.list("")
    disk.power_off()
    assert ".kafka_cleanshutdown" not in disk.list("")
    assert get_log(open_catalog(disk)).end_offset == 1


def test_a_lost_directory_is_made_again() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {}, NOW)
    catalog.close(NOW)
    for name in list(disk.list(f"{TOPIC}-1")):
        disk.remove(f"{TOPIC}-1/{name}")
    disk.remove(f"{TOPIC}-1")

    catalog, _ = Catalog.open(disk, NOW)

    log = catalog.partition(TOPIC, 1)
    assert log is not None
    assert log.append(numbered_batch(0), NOW).base_offset == 0
