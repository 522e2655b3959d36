"""Syncing: what was written is handed out once, and what was synced survives anything."""

from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.errors import StorageError
from kohort.log.osdisk import OsDisk
from kohort.types import Offset, Topic, Uuid
from tests.log.disks import ForgetfulDisk
from tests.log.logs import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    get_log,
    headers_of,
    numbered_batch,
    open_catalog,
    opened,
    read_all,
)


def test_many_appends_share_one_sync() -> None:
    catalog = open_catalog(ForgetfulDisk())
    log = get_log(catalog)
    for number in range(10):
        log.append(numbered_batch(number), NOW)

    assert len(catalog.take_unsynced()) == 1
    assert catalog.take_unsynced() == ()

    log.append(numbered_batch(10), NOW)
    assert len(catalog.take_unsynced()) == 1


def test_every_partition_that_was_written_is_handed_out() -> None:
    catalog = open_catalog(ForgetfulDisk())
    catalog.create_topic(TOPIC, Uuid(b"t" * 16), 3, {}, NOW)
    for partition in (0, 2):
        log = catalog.partition(TOPIC, partition)
        assert log is not None
        log.append(numbered_batch(0), NOW)

    assert len(catalog.take_unsynced()) == 2


def test_only_what_was_synced_survives_a_power_failure() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(25):
        log.append(numbered_batch(number), NOW)
    for each in catalog.take_unsynced():
        each.sync()
    log.append(numbered_batch(25), NOW)

    disk.power_off()

    with opened(disk) as log:
        assert [each.base_offset for each in headers_of(read_all(log))] == [*range(25)]


def test_nothing_survives_a_power_failure_that_nobody_synced() -> None:
    disk = ForgetfulDisk()
    log = get_log(open_catalog(disk))
    log.append(numbered_batch(0), NOW)

    disk.power_off()

    with opened(disk) as log:
        assert log.end_offset == 0


def test_what_was_synced_moves_the_recovery_point(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    log = get_log(catalog)
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    for number in range(3):
        log.append(numbered_batch(number), NOW)
    unsynced = catalog.take_unsynced()
    catalog.clean(NOW)
    assert checkpoint.read_text() == f"0\n1\n{TOPIC} 0 0\n"

    for each in unsynced:
        each.sync()
    log.append(numbered_batch(3), NOW)
    catalog.clean(NOW)

    assert checkpoint.read_text() == f"0\n1\n{TOPIC} 0 3\n"
    catalog.close(NOW)
    assert checkpoint.read_text() == f"0\n1\n{TOPIC} 0 4\n"


def test_sealed_segments_are_synced_by_cleaning_if_by_nobody_else() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(25):
        log.append(numbered_batch(number), NOW)
    names = [name for name in disk.list(f"{TOPIC}-0") if name.endswith(".log")]

    catalog.clean(NOW)
    disk.power_off()

    with opened(disk) as log:
        assert log.end_offset == int(max(names)[:20])


def test_a_partition_deleted_meanwhile_needs_no_sync(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    get_log(catalog).append(numbered_batch(0), NOW)
    unsynced = catalog.take_unsynced()

    catalog.delete_topic(TOPIC)

    for each in unsynced:
        each.sync()
    assert catalog.take_unsynced() == ()
    catalog.close(NOW)


def test_segments_removed_meanwhile_need_no_sync(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(15):
        log.append(numbered_batch(number), NOW)
    early = catalog.take_unsynced()
    for number in range(15):
        log.append(numbered_batch(number), NOW)

    log.delete_before(Offset(30))

    for each in (*early, *catalog.take_unsynced()):
        each.sync()
    catalog.close(NOW)


def test_a_sync_that_fails_is_an_error() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)
    (unsynced,) = catalog.take_unsynced()

    def fail(path: str) -> None:
        raise StorageError(path, "sync directory", "Input/output error")

    disk.sync_directory = fail  # type: ignore[method-assign]  # a disk that fails
    with pytest.raises(StorageError):
        unsynced.sync()


def test_a_file_may_be_closed_while_another_thread_syncs_it(tmp_path: Path) -> None:
    file = OsDisk(tmp_path).create("f")
    sync = file.sync
    file.append(b"x")

    file.close()

    sync()


def test_logs_taken_one_by_one_do_not_pile_up() -> None:
    catalog = open_catalog(ForgetfulDisk())
    log = get_log(catalog)
    catalog.create_topic(Topic("other"), Uuid(b"o" * 16), 1, {}, NOW)
    for number in range(3):
        log.append(numbered_batch(number), NOW)
        log.take_unsynced()

    assert catalog.take_unsynced() == ()
