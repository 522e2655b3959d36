"""File descriptors: a limited number of open files, and no damage when there are none left."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.errors import OutOfResources, StorageError
from kohort.log.limits import Limits
from kohort.log.os_disk import OsDisk, default_open_files_max
from kohort.types import Offset
from tests.log.log_setup import (
    COMPACTED,
    NOW,
    TOPIC,
    TOPIC_ID,
    get_log,
    latest_of,
    new_batch,
    new_record,
    numbered_batch,
)

PARTITIONS = 60
BUDGET = 10


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # a Path would open more


@contextmanager
def no_descriptors(left: int = 0) -> Iterator[None]:
    """All but `left` descriptors of this process are in use."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each) for each in os.listdir("/proc/self/fd"))  # noqa: PTH208  # as above
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, before[1]))
    taken = []
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        for _ in range(left):
            os.close(taken.pop())
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def open_small(tmp_path: Path) -> Catalog:
    catalog, _ = Catalog.open(tmp_path, NOW, limits=Limits(open_files_max=BUDGET))
    if catalog.find_topic(TOPIC) is None:
        catalog.create_topic(TOPIC, TOPIC_ID, PARTITIONS, {})
    return catalog


def append_to_all(catalog: Catalog) -> None:
    for each in range(PARTITIONS):
        log = catalog.partition(TOPIC, each)
        assert log is not None
        log.append(numbered_batch(each), NOW)


def test_budget_is_half_of_the_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, before[1]))
    try:
        assert default_open_files_max() == 500
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_more_partitions_than_descriptors_can_be_written_and_read(tmp_path: Path) -> None:
    catalog = open_small(tmp_path)
    before = count_descriptors()

    for _ in range(3):
        append_to_all(catalog)

    assert count_descriptors() <= before + BUDGET
    for each in range(PARTITIONS):
        log = catalog.partition(TOPIC, each)
        assert log is not None
        assert log.end_offset == 3
        assert len(log.read(Offset(0), 10_000, at_least_one=True)) == 3 * len(numbered_batch(each))
    assert count_descriptors() <= before + BUDGET
    catalog.close(NOW)


def test_least_recently_used_file_is_closed(tmp_path: Path) -> None:
    disk = OsDisk(tmp_path, open_files_max=3)
    files = [disk.create(f"{each}") for each in range(3)]
    files[0].append(b"used")
    before = count_descriptors()

    disk.create("more")

    open_files = {Path(f"/proc/self/fd/{each}").readlink() for each in _numbers()}
    assert count_descriptors() == before
    assert {each.name for each in open_files if each.parent == tmp_path} == {"0", "2", "more"}


def _numbers() -> list[str]:
    listed = os.listdir("/proc/self/fd")  # noqa: PTH208  # as above
    return [each for each in listed if Path(f"/proc/self/fd/{each}").exists()]


def test_every_written_file_is_synced_although_most_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_small(tmp_path)
    append_to_all(catalog)
    pending = catalog.take_pending_syncs()
    synced = []
    fdatasync = os.fdatasync

    def record(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink())
        fdatasync(fd)

    monkeypatch.setattr(os, "fdatasync", record)
    for each in pending:
        each.sync()

    logs = {tmp_path / f"{TOPIC}-{each}" / f"{0:020d}.log" for each in range(PARTITIONS)}
    assert set(synced) == logs
    catalog.close(NOW)


def test_sync_of_a_file_that_lost_its_descriptor_reports_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_small(tmp_path)
    append_to_all(catalog)
    first = catalog.take_pending_syncs()[0]

    def fail(_: int) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StorageError) as failed:
        first.sync()

    # Not something to repeat: the data may be lost.
    assert not isinstance(failed.value, OutOfResources)
    catalog.abandon()


def test_sync_of_a_removed_file_that_lost_its_descriptor_does_nothing(tmp_path: Path) -> None:
    disk = OsDisk(tmp_path, open_files_max=1)
    file = disk.create("f")
    file.append(b"x")
    disk.create("other")

    file.close()
    disk.remove("f")

    file.sync()


def test_sync_without_a_descriptor_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = OsDisk(tmp_path, open_files_max=1)
    file = disk.create("f")
    file.append(b"x")
    disk.create("other")

    def refuse(*_: object) -> int:
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OutOfResources):
            file.sync()
        with pytest.raises(OutOfResources):
            disk.sync_directory("")

    file.sync()
    disk.sync_directory("")


def test_partitions_are_written_without_a_free_descriptor(tmp_path: Path) -> None:
    catalog = open_small(tmp_path)
    append_to_all(catalog)

    with no_descriptors():
        append_to_all(catalog)
        catalog.clean(NOW)
        for each in catalog.take_pending_syncs():
            each.sync()

    catalog.close(NOW)
    catalog = open_small(tmp_path)
    log = catalog.partition(TOPIC, PARTITIONS - 1)
    assert log is not None
    assert log.end_offset == 2
    catalog.close(NOW)


def test_compaction_without_a_free_descriptor_keeps_the_log_usable(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW, limits=Limits(open_files_max=2))
    log = get_log(catalog, COMPACTED)
    for number in range(60):
        log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(50))), NOW)
    expected = latest_of(log)

    with no_descriptors():
        catalog.clean(NOW)

    log.append(new_batch(new_record("last", "x")), NOW)
    assert latest_of(log) == {**expected, b"last": b"x"}
    catalog.close(NOW)


def test_no_descriptor_is_a_shortage_and_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_small(tmp_path)
    log = catalog.partition(TOPIC, 0)
    assert log is not None

    def refuse(*_: object) -> int:
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OutOfResources, match="Too many open files in system"):
            log.append(numbered_batch(0), NOW)

    assert log.append(numbered_batch(0), NOW).base_offset == 0
    catalog.close(NOW)
