"""A full disk: operations fail without damage, and succeed when there is space again."""

import errno
import os
from pathlib import Path

import pytest

from kohort.log.appended_batch import TrustedBatch
from kohort.log.catalog import Catalog
from kohort.log.errors import StorageError
from kohort.log.index import OFFSET_ENTRY, Index
from kohort.log.os_disk import OsDisk, OsFile
from kohort.types import ErrorCode, Offset, Uuid
from tests.log.faulty_disks import FullDisk, MemoryDisk
from tests.log.log_setup import (
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
    open_log,
    read_all,
)

PLENTY = 1 << 30


def test_log_stays_valid_on_a_full_disk() -> None:
    """Small segments, so that rolls, index flushes and snapshots fail as well."""
    for free_bytes in range(0, 2500, 7):
        disk = MemoryDisk()
        full = FullDisk(disk, PLENTY)
        catalog = open_catalog(full)
        log = get_log(catalog, SMALL_SEGMENTS)
        full.free_bytes = free_bytes

        kept = failed = 0
        for number in range(40):
            try:
                # Different sizes: a smaller batch may fit after a larger one did not.
                batch = numbered_batch(number, size=37 * number % 100)
                assert log.append(batch, NOW).base_offset == kept
                kept += 1
            except StorageError as error:
                assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
                failed += 1
        assert failed
        assert log.end_offset == kept
        assert [each.base_offset for each in headers_of(read_all(log))] == [*range(kept)]

        full.free_bytes = PLENTY
        for number in range(25):
            assert log.append(numbered_batch(number), NOW).base_offset == kept + number
        if free_bytes % 2:
            catalog.close(NOW)
        else:
            disk.kill()
        with open_log(disk) as log:
            expected = [*range(kept + 25)]
            assert [each.base_offset for each in headers_of(read_all(log))] == expected


def test_smaller_batch_is_appended_after_a_failed_one() -> None:
    full = FullDisk(MemoryDisk(), PLENTY)
    log = get_log(open_catalog(full))
    full.free_bytes = 150

    with pytest.raises(StorageError):
        log.append(numbered_batch(0, size=200), NOW)
    assert full.list(f"{TOPIC}-0")[f"{0:020d}.log"] == 0
    full.free_bytes = 150

    assert log.append(numbered_batch(1), NOW).base_offset == 0
    assert log.size_bytes == len(read_all(log)) == len(numbered_batch(1))


def test_write_of_several_batches_is_atomic() -> None:
    full = FullDisk(MemoryDisk(), PLENTY)
    log = get_log(open_catalog(full))
    batches = [TrustedBatch(numbered_batch(0), 1, NOW), TrustedBatch(numbered_batch(1), 1, NOW)]
    full.free_bytes = len(batches[0].data) + 10

    errors = log.append_trusted_batches(batches, NOW)

    assert [type(each) for each in errors] == [StorageError, StorageError]
    assert (log.end_offset, log.size_bytes, read_all(log)) == (0, 0, b"")
    full.free_bytes = PLENTY
    assert [*log.append_trusted_batches(batches[:1], NOW)] == [None]
    assert log.end_offset == 1


def test_failed_append_does_not_change_producer_state() -> None:
    full = FullDisk(MemoryDisk(), PLENTY)
    log = get_log(open_catalog(full))
    batch = new_batch(producer_id=1, producer_epoch=0, base_sequence=0)
    full.free_bytes = 10
    with pytest.raises(StorageError):
        log.append(batch, NOW)
    full.free_bytes = PLENTY

    assert not log.append(batch, NOW).is_duplicate


def test_compaction_that_failed_on_a_full_disk_succeeds_later() -> None:
    for free_bytes in range(0, 900, 11):
        full = FullDisk(MemoryDisk(), PLENTY)
        catalog = open_catalog(full)
        log = get_log(catalog, COMPACTED)
        for number in range(60):
            log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(50))), NOW)
        expected = latest_of(log)
        catalog.clean(NOW, budget_bytes=0)
        full.free_bytes = free_bytes

        cleaned = catalog.clean(NOW).partitions[0].cleaned
        assert latest_of(log) == expected
        if cleaned.failure is None:
            continue

        full.free_bytes = PLENTY
        assert catalog.clean(NOW).partitions[0].cleaned.compacted is not None
        assert latest_of(log) == expected
        assert not any(name.endswith(".cleaned") for name in full.list(f"{TOPIC}-0"))


def test_create_topic_on_a_full_disk_leaves_nothing() -> None:
    for free_bytes in range(0, 300, 3):
        disk = MemoryDisk()
        full = FullDisk(disk, PLENTY)
        catalog = open_catalog(full)
        full.free_bytes = free_bytes
        try:
            catalog.create_topic(TOPIC, Uuid(b"t" * 16), 3, {})
        except StorageError:
            assert catalog.find_topic(TOPIC) is None
            assert catalog.partition(TOPIC, 0) is None
            full.free_bytes = PLENTY
            catalog.create_topic(TOPIC, Uuid(b"u" * 16), 3, {})
        disk.kill()

        catalog = open_catalog(disk)
        topic = catalog.find_topic(TOPIC)
        assert topic is not None
        assert topic.partition_count == 3


def test_failed_roll_keeps_the_active_segment() -> None:
    """The next batch may still fit into it, also after a restart."""
    for free_bytes in range(120):
        disk = MemoryDisk()
        full = FullDisk(disk, PLENTY)
        catalog = open_catalog(full)
        log = get_log(catalog, SMALL_SEGMENTS)
        for number in range(8):
            log.append(numbered_batch(number), NOW)
        full.free_bytes = free_bytes
        with pytest.raises(StorageError):
            log.append(numbered_batch(8, size=600), NOW)
        full.free_bytes = PLENTY

        log.append(numbered_batch(8), NOW)

        assert log.size_bytes < 1000
        if free_bytes % 2:
            catalog.close(NOW)
        else:
            disk.kill()
        with open_log(disk) as log:
            assert log.end_offset == 9
            assert [each.base_offset for each in headers_of(read_all(log))] == [*range(9)]


def test_flush_repairs_a_partially_written_index() -> None:
    disk = MemoryDisk()
    full = FullDisk(disk, PLENTY)
    disk.create("index").close()
    index = Index(full, "index", OFFSET_ENTRY, 0)
    index.load()
    for number in range(2):
        index.append(number, 10 * number)
    index.flush()
    for number in range(2, 5):
        index.append(number, 10 * number)
    full.free_bytes = 12
    with pytest.raises(StorageError):
        index.flush()
    full.free_bytes = PLENTY

    index.flush()

    expected = [(number, 10 * number) for number in range(5)]
    assert list(OFFSET_ENTRY.iter_unpack(bytes(disk.content("index")))) == expected


def test_partial_append_is_truncated_before_the_next_one() -> None:
    """The append and the truncation after it fail; the next append truncates first."""
    disk = MemoryDisk()
    full = FullDisk(disk, PLENTY)
    log = get_log(open_catalog(full))
    log.append(numbered_batch(0), NOW)
    full.free_bytes, full.fails_to_truncate = 30, True
    with pytest.raises(StorageError):
        log.append(numbered_batch(1), NOW)
    with pytest.raises(StorageError):
        log.append(numbered_batch(1), NOW)
    full.free_bytes, full.fails_to_truncate = PLENTY, False

    assert len(log.read(Offset(0), 10_000, at_least_one=True)) == len(numbered_batch(0))
    assert log.append(numbered_batch(2), NOW).base_offset == 1
    assert [each.base_offset for each in headers_of(read_all(log))] == [0, 1]


def test_short_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    with open_log(tmp_path) as log:
        log.append(numbered_batch(0), NOW)

        assert len(read_all(log)) == len(numbered_batch(0))


def test_os_error_becomes_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = OsDisk(tmp_path)
    catalog, _ = Catalog.open(disk, NOW)
    log = get_log(catalog)

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(fd) + str(len(data)))

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", full)
        with pytest.raises(StorageError) as failed:
            log.append(numbered_batch(0), NOW)

    assert failed.value.reason == "No space left on device"
    assert log.append(numbered_batch(0), NOW).base_offset == 0
    catalog.close(NOW)


def test_short_reads_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsDisk(tmp_path).create("f")
    file.append(b"0123456789")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(3, size), at))

    assert file.read(1, 8) == b"12345678"
    assert file.read(8, 100) == b"89"
    assert isinstance(file, OsFile)
