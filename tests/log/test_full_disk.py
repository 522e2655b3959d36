"""A full disk: what does not fit is refused, what is there stays, and room makes it go on."""

import errno
import os
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.errors import StorageError
from kohort.log.index import OFFSET_ENTRY, Index
from kohort.log.osdisk import OsDisk, OsFile
from kohort.log.partition import Made
from kohort.types import ErrorCode, Offset, Uuid
from tests.log.disks import ForgetfulDisk, FullDisk
from tests.log.logs import (
    COMPACTED,
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    get_log,
    headers_of,
    latest_of,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    opened,
    read_all,
)

PLENTY = 1 << 30


def test_whatever_room_is_left_the_log_stays_whole_and_goes_on() -> None:
    """Small segments, so that rolling, indexes and snapshots meet the full disk as well."""
    for room in range(0, 2500, 7):
        disk = ForgetfulDisk()
        full = FullDisk(disk, PLENTY)
        catalog = open_catalog(full)
        log = get_log(catalog, SMALL_SEGMENTS)
        full.room = room

        kept = failed = 0
        for number in range(40):
            try:
                # Of different sizes: what is too large for a segment may be followed by what fits.
                batch = numbered_batch(number, size=37 * number % 100)
                assert log.append(batch, NOW).base_offset == kept
                kept += 1
            except StorageError as error:
                assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
                failed += 1
        assert failed
        assert log.end_offset == kept
        assert [each.base_offset for each in headers_of(read_all(log))] == [*range(kept)]

        full.room = PLENTY
        for number in range(25):
            assert log.append(numbered_batch(number), NOW).base_offset == kept + number
        if room % 2:
            catalog.close(NOW)
        else:
            disk.kill()
        with opened(disk) as log:
            expected = [*range(kept + 25)]
            assert [each.base_offset for each in headers_of(read_all(log))] == expected


def test_a_batch_that_fits_is_kept_after_one_that_did_not() -> None:
    full = FullDisk(ForgetfulDisk(), PLENTY)
    log = get_log(open_catalog(full))
    full.room = 150

    with pytest.raises(StorageError):
        log.append(numbered_batch(0, size=200), NOW)
    assert full.list(f"{TOPIC}-0")[f"{0:020d}.log"] == 0
    full.room = 150

    assert log.append(numbered_batch(1), NOW).base_offset == 0
    assert log.size_bytes == len(read_all(log)) == len(numbered_batch(1))


def test_of_batches_in_one_write_all_are_kept_or_none() -> None:
    full = FullDisk(ForgetfulDisk(), PLENTY)
    log = get_log(open_catalog(full))
    batches = [Made(numbered_batch(0), 1, NOW), Made(numbered_batch(1), 1, NOW)]
    full.room = len(batches[0].data) + 10

    faults = log.append_made(batches, NOW)

    assert [type(each) for each in faults] == [StorageError, StorageError]
    assert (log.end_offset, log.size_bytes, read_all(log)) == (0, 0, b"")
    full.room = PLENTY
    assert [*log.append_made(batches[:1], NOW)] == [None]
    assert log.end_offset == 1


def test_a_failed_append_is_not_remembered_of_its_producer() -> None:
    full = FullDisk(ForgetfulDisk(), PLENTY)
    log = get_log(open_catalog(full))
    batch = new_batch(producer_id=1, producer_epoch=0, base_sequence=0)
    full.room = 10
    with pytest.raises(StorageError):
        log.append(batch, NOW)
    full.room = PLENTY

    assert not log.append(batch, NOW).is_duplicate


def test_compaction_on_a_full_disk_is_given_up_and_done_later() -> None:
    for room in range(0, 900, 11):
        full = FullDisk(ForgetfulDisk(), PLENTY)
        catalog = open_catalog(full)
        log = get_log(catalog, COMPACTED)
        for number in range(60):
            log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(50))), NOW)
        expected = latest_of(log)
        catalog.clean(NOW, budget_bytes=0)
        full.room = room

        cleaned = catalog.clean(NOW).partitions[0].cleaned
        assert latest_of(log) == expected
        if cleaned.failure is None:
            continue

        full.room = PLENTY
        assert catalog.clean(NOW).partitions[0].cleaned.compacted is not None
        assert latest_of(log) == expected
        assert not any(name.endswith(".cleaned") for name in full.list(f"{TOPIC}-0"))


def test_a_topic_that_does_not_fit_is_not_made() -> None:
    for room in range(0, 300, 3):
        disk = ForgetfulDisk()
        full = FullDisk(disk, PLENTY)
        catalog = open_catalog(full)
        full.room = room
        try:
            catalog.create_topic(TOPIC, Uuid(b"t" * 16), 3, {}, NOW)
        except StorageError:
            assert catalog.find_topic(TOPIC) is None
            assert catalog.partition(TOPIC, 0) is None
            full.room = PLENTY
            catalog.create_topic(TOPIC, Uuid(b"u" * 16), 3, {}, NOW)
        disk.kill()

        catalog = open_catalog(disk)
        topic = catalog.find_topic(TOPIC)
        assert topic is not None
        assert topic.partition_count == 3


def test_a_segment_that_could_not_begin_leaves_the_last_one_as_it_was() -> None:
    """The next batch may still fit there, and nothing may stand in its way after a restart."""
    for room in range(120):
        disk = ForgetfulDisk()
        full = FullDisk(disk, PLENTY)
        catalog = open_catalog(full)
        log = get_log(catalog, SMALL_SEGMENTS)
        for number in range(8):
            log.append(numbered_batch(number), NOW)
        full.room = room
        with pytest.raises(StorageError):
            log.append(numbered_batch(8, size=600), NOW)
        full.room = PLENTY

        log.append(numbered_batch(8), NOW)

        assert log.size_bytes < 1000
        if room % 2:
            catalog.close(NOW)
        else:
            disk.kill()
        with opened(disk) as log:
            assert log.end_offset == 9
            assert [each.base_offset for each in headers_of(read_all(log))] == [*range(9)]


def test_an_index_that_was_written_in_part_is_written_right_the_next_time() -> None:
    disk = ForgetfulDisk()
    full = FullDisk(disk, PLENTY)
    disk.create("index").close()
    index = Index(full, "index", OFFSET_ENTRY, 0)
    index.hold()
    for number in range(2):
        index.append(number, 10 * number)
    index.flush()
    for number in range(2, 5):
        index.append(number, 10 * number)
    full.room = 12
    with pytest.raises(StorageError):
        index.flush()
    full.room = PLENTY

    index.flush()

    expected = [(number, 10 * number) for number in range(5)]
    assert list(OFFSET_ENTRY.iter_unpack(bytes(disk.content("index")))) == expected


def test_the_file_is_mended_later_if_it_could_not_be_at_once() -> None:
    """The disk fails the append and the truncation after it; the next append finds it well."""
    disk = ForgetfulDisk()
    full = FullDisk(disk, PLENTY)
    log = get_log(open_catalog(full))
    log.append(numbered_batch(0), NOW)
    full.room, full.refuses_to_truncate = 30, True
    with pytest.raises(StorageError):
        log.append(numbered_batch(1), NOW)
    with pytest.raises(StorageError):
        log.append(numbered_batch(1), NOW)
    full.room, full.refuses_to_truncate = PLENTY, False

    assert len(log.read(Offset(0), 10_000, at_least_one=True)) == len(numbered_batch(0))
    assert log.append(numbered_batch(2), NOW).base_offset == 1
    assert [each.base_offset for each in headers_of(read_all(log))] == [0, 1]


def test_a_write_the_system_takes_in_part_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    with opened(tmp_path) as log:
        log.append(numbered_batch(0), NOW)

        assert len(read_all(log)) == len(numbered_batch(0))


def test_an_error_of_the_system_becomes_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    log = get_log(catalog)

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(fd) + str(len(data)))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StorageError) as failed:
            log.append(numbered_batch(0), NOW)

    assert failed.value.reason == "No space left on device"
    assert log.append(numbered_batch(0), NOW).base_offset == 0
    catalog.close(NOW)


def test_reads_are_finished_though_the_system_gives_little_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsDisk(tmp_path).create("f")
    file.append(b"0123456789")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(3, size), at))

    assert file.read(1, 8) == b"12345678"
    assert file.read(8, 100) == b"89"
    assert isinstance(file, OsFile)
