"""Sync: pending syncs are returned once, and synced records survive a power failure."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.errors import StorageError
from kohort.log.os_disk import OsDisk
from kohort.types import Offset, Topic, Uuid
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    get_log,
    headers_of,
    numbered_batch,
    open_catalog,
    open_log,
    read_all,
)


def test_many_appends_share_one_sync() -> None:
    catalog = open_catalog(MemoryDisk())
    log = get_log(catalog)
    for number in range(10):
        log.append(numbered_batch(number), NOW)

    assert len(catalog.take_pending_syncs()) == 1
    assert catalog.take_pending_syncs() == ()

    log.append(numbered_batch(10), NOW)
    assert len(catalog.take_pending_syncs()) == 1


def test_every_written_partition_has_a_pending_sync() -> None:
    catalog = open_catalog(MemoryDisk())
    catalog.create_topic(TOPIC, Uuid(b"t" * 16), 3, {})
    for partition in (0, 2):
        log = catalog.partition(TOPIC, partition)
        assert log is not None
        log.append(numbered_batch(0), NOW)

    assert len(catalog.take_pending_syncs()) == 2


def test_synced_records_survive_a_power_failure() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(25):
        log.append(numbered_batch(number), NOW)
    for each in catalog.take_pending_syncs():
        each.sync()
    log.append(numbered_batch(25), NOW)

    disk.power_off()

    with open_log(disk) as log:
        assert [each.base_offset for each in headers_of(read_all(log))] == [*range(25)]


def test_unsynced_records_do_not_survive_a_power_failure() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk))
    log.append(numbered_batch(0), NOW)

    disk.power_off()

    with open_log(disk) as log:
        assert log.end_offset == 0


def test_sync_moves_the_recovery_point(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    log = get_log(catalog)
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    for number in range(3):
        log.append(numbered_batch(number), NOW)
    pending = catalog.take_pending_syncs()
    catalog.clean(NOW)
    assert checkpoint.read_text().startswith(f"0\n2\n{TOPIC} 0 0\n__kohort_checksum 0 ")

    for each in pending:
        each.sync()
    log.append(numbered_batch(3), NOW)
    catalog.clean(NOW)

    assert checkpoint.read_text().startswith(f"0\n2\n{TOPIC} 0 3\n__kohort_checksum 0 ")
    catalog.close(NOW)
    assert checkpoint.read_text().startswith(f"0\n2\n{TOPIC} 0 4\n__kohort_checksum 0 ")


def test_cleaning_syncs_sealed_segments() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(25):
        log.append(numbered_batch(number), NOW)
    names = [name for name in disk.list(f"{TOPIC}-0") if name.endswith(".log")]

    catalog.clean(NOW)
    disk.power_off()

    with open_log(disk) as log:
        assert log.end_offset == int(max(names)[:20])


def test_sync_of_a_deleted_partition_does_nothing(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    get_log(catalog).append(numbered_batch(0), NOW)
    pending = catalog.take_pending_syncs()

    catalog.delete_topic(TOPIC)

    for each in pending:
        each.sync()
    assert catalog.take_pending_syncs() == ()
    catalog.close(NOW)


def test_sync_of_removed_segments_does_nothing(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(15):
        log.append(numbered_batch(number), NOW)
    early = catalog.take_pending_syncs()
    for number in range(15):
        log.append(numbered_batch(number), NOW)

    log.delete_before(Offset(30))

    for each in (*early, *catalog.take_pending_syncs()):
        each.sync()
    catalog.close(NOW)


def test_failed_sync_raises_a_storage_error() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)
    (pending,) = catalog.take_pending_syncs()

    def fail(path: str) -> None:
        raise StorageError(path, "sync directory", "Input/output error")

    disk.sync_directory = fail  # type: ignore[method-assign]  # a disk that fails
    with pytest.raises(StorageError):
        pending.sync()


def test_a_file_can_be_closed_while_another_thread_syncs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsDisk(tmp_path).create("f")
    file.append(b"x")
    has_started, is_closed = threading.Event(), threading.Event()
    fdatasync = os.fdatasync

    def sync_after_close(fd: int) -> None:
        has_started.set()
        assert is_closed.wait(10)
        fdatasync(fd)

    monkeypatch.setattr(os, "fdatasync", sync_after_close)
    with ThreadPoolExecutor(1) as pool:
        syncing = pool.submit(file.sync)
        assert has_started.wait(10)
        file.close()
        is_closed.set()

        syncing.result(10)


def test_catalog_has_no_pending_sync_after_the_log_returned_it() -> None:
    catalog = open_catalog(MemoryDisk())
    log = get_log(catalog)
    catalog.create_topic(Topic("other"), Uuid(b"o" * 16), 1, {})
    for number in range(3):
        log.append(numbered_batch(number), NOW)
        log.take_pending_syncs()

    assert catalog.take_pending_syncs() == ()
