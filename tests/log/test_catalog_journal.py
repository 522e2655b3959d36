"""The journal of the catalog: every cut of it, every step of a replacement, and old formats."""

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest

from kohort.log import catalog_journal
from kohort.log.catalog import Catalog
from kohort.log.catalog_file import CatalogTopic
from kohort.log.disk import File
from kohort.log.errors import DataDirectoryError, StorageError
from kohort.types import Topic, Uuid
from kohort.wire.batch_header import checksum
from tests.log.faulty_disks import Crash, CrashingDisk, FullDisk, MemoryDisk
from tests.log.log_setup import NOW, TOPIC, get_log, numbered_batch, open_catalog

CATALOG = "kohort-catalog.json"
JOURNAL = "kohort-catalog.journal"
OTHER = Topic("other")
IDS = [Uuid(bytes([each]) * 16) for each in range(1, 100)]

State = tuple[tuple[CatalogTopic, ...], int]
"""The topics, and the next producer id."""


def new_topic(number: int) -> CatalogTopic:
    return CatalogTopic(
        name=Topic(f"t{number}"), topic_id=IDS[number], partition_count=number, settings={}
    )


def first_changes(catalog: Catalog) -> list[Callable[[], object]]:
    """One of each kind of change."""
    return [
        lambda: catalog.create_topic(TOPIC, IDS[0], 2, {"retention.ms": "5"}),
        lambda: catalog.create_topics([new_topic(each) for each in range(1, 4)]),
        lambda: catalog.add_partitions(TOPIC, 3),
        lambda: catalog.alter_settings(TOPIC, {"max.message.bytes": "9"}),
        lambda: catalog.reserve_producer_ids(1000),
        lambda: catalog.delete_topics((Topic("t1"), Topic("t3"))),
        lambda: catalog.clean(NOW),
        lambda: catalog.create_topic(Topic("t1"), IDS[9], 1, {}),
    ]


def state_of(disk: MemoryDisk) -> State:
    """The state after a crash now. The disk does not change."""
    catalog = open_catalog(copy.deepcopy(disk))
    return catalog.topics, catalog.reserve_producer_ids(1)


def make_changes(disk: MemoryDisk) -> tuple[list[State], list[int]]:
    """The state and the length of the journal, at first and after each change."""
    catalog = open_catalog(disk)
    states, lengths = [], []

    def note() -> None:
        killed = copy.deepcopy(disk)
        killed.kill()
        states.append(state_of(killed))
        lengths.append(len(disk.content(JOURNAL)))

    note()
    for change in first_changes(catalog):
        change()
        note()
    disk.kill()
    return states, lengths


def test_journal_that_is_cut_anywhere_loses_only_the_incomplete_change() -> None:
    disk = MemoryDisk()
    states, lengths = make_changes(disk)
    data = bytes(disk.content(JOURNAL))

    for length in range(len(data) + 1):
        disk.content(JOURNAL)[:] = data[:length]
        complete = max(at for at, each in enumerate(lengths) if each <= length)

        assert state_of(disk) == states[complete]


@pytest.mark.parametrize("filler", [b"\0", b"\n", b"x", b"0"])
def test_garbage_after_the_last_change_is_cut_off(filler: bytes) -> None:
    disk = MemoryDisk()
    states, lengths = make_changes(disk)
    data = bytes(disk.content(JOURNAL))

    for kept in range(lengths[-2], lengths[-1]):
        disk.content(JOURNAL)[:] = data[:kept] + filler * (lengths[-1] - kept)

        # The last byte is a newline, so one of the fillers restores it.
        is_complete = bytes(disk.content(JOURNAL)) == data
        assert state_of(disk) == states[-1 if is_complete else -2]


def test_changes_after_a_torn_one_are_kept() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, IDS[0], 1, {})
    disk.kill()
    disk.content(JOURNAL).extend(b"0123abcd {torn")

    open_catalog(disk).create_topic(OTHER, IDS[1], 1, {})
    disk.power_off()

    assert [topic.name for topic in open_catalog(disk).topics] == [TOPIC, OTHER]


def test_damage_before_the_last_change_is_refused() -> None:
    disk = MemoryDisk()
    _, lengths = make_changes(disk)
    data = bytes(disk.content(JOURNAL))

    for position in range(lengths[1], lengths[2]):
        disk.content(JOURNAL)[:] = data
        disk.content(JOURNAL)[position] ^= 1

        with pytest.raises(DataDirectoryError, match=r"kohort-catalog\.journal is corrupt at \d+"):
            open_catalog(disk)


def test_missing_change_is_refused() -> None:
    disk = MemoryDisk()
    _, lengths = make_changes(disk)
    del disk.content(JOURNAL)[: lengths[1]]

    with pytest.raises(DataDirectoryError, match="change 1 is missing"):
        open_catalog(disk)


def test_missing_journal_is_refused() -> None:
    disk = MemoryDisk()
    make_changes(disk)
    disk.remove(JOURNAL)

    with pytest.raises(DataDirectoryError, match=r"kohort-catalog\.journal is missing"):
        open_catalog(disk)


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"sequence": 1, "topics": {"t": {}}}', '{"sequence": 1, "deleted": ["t"]}'],
)
def test_invalid_change_with_a_valid_checksum_is_refused(text: str) -> None:
    disk = MemoryDisk()
    open_catalog(disk).close(NOW)
    disk.content(JOURNAL).extend(f"{checksum(text.encode()):08x} {text}\n".encode())

    with pytest.raises(DataDirectoryError, match="is corrupt at 0"):
        open_catalog(disk)


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_crash_at_any_step_of_a_change_keeps_the_state_before_or_after(seed: int | None) -> None:
    prepared = MemoryDisk()
    open_catalog(prepared).close(NOW)
    states, _ = make_changes(copy.deepcopy(prepared))

    crash_at = 0
    while True:
        disk = copy.deepcopy(prepared)
        done = 0
        try:
            for change in first_changes(open_catalog(CrashingDisk(disk, crash_at))):
                change()
                done += 1
        except Crash:
            disk.power_off(seed)
        else:
            break
        assert state_of(disk) in states[done : done + 2]
        crash_at += 1
    assert crash_at > 15


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_crash_at_any_step_of_a_snapshot_keeps_all_topics(
    seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = MemoryDisk()
    states, _ = make_changes(prepared)
    monkeypatch.setattr(catalog_journal, "_SMALL_BYTES", 0)
    counting = CrashingDisk(copy.deepcopy(prepared))
    open_catalog(counting)

    for crash_at in range(counting.changes):
        disk = copy.deepcopy(prepared)
        with pytest.raises(Crash):
            open_catalog(CrashingDisk(disk, crash_at))
        disk.power_off(seed)

        assert state_of(disk) == states[-1]
    disk = copy.deepcopy(prepared)
    open_catalog(disk)
    assert disk.content(JOURNAL) == b""


def test_long_journal_is_replaced_by_a_snapshot_while_the_node_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog_journal, "_JOURNAL_BYTES_MAX", 500)
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    lengths = []
    for number in range(50):
        catalog.create_topic(Topic(f"t{number}"), IDS[number], 1, {})
        lengths.append(len(disk.content(JOURNAL)))

    disk.power_off()

    assert any(later < earlier for earlier, later in pairwise(lengths))
    assert [topic.name for topic in open_catalog(disk).topics] == [f"t{each}" for each in range(50)]


def test_what_a_restarted_node_serves_survives_a_power_failure() -> None:
    prepared = MemoryDisk()
    open_catalog(prepared).close(NOW)

    crash_at, is_finished = 0, False
    while not is_finished:
        disk = copy.deepcopy(prepared)
        with suppress(Crash):
            for change in first_changes(open_catalog(CrashingDisk(disk, crash_at))):
                change()
            is_finished = True
        disk.kill()
        served = open_catalog(disk).topics
        disk.power_off()

        assert open_catalog(disk).topics == served
        crash_at += 1
    assert crash_at > 15


def write_format_1(disk: MemoryDisk) -> None:
    content = {
        "format": 1,
        "cluster_id": "old",
        "next_producer_id": 7,
        "topics": {
            TOPIC: {
                "topic_id": "AAECAwQFBgcICQoLDA0ODw",
                "partitions": 1,
                "settings": {"retention.ms": "5"},
            }
        },
        "deleting": [],
    }
    disk.write_atomically(CATALOG, json.dumps(content, indent=1).encode())


def test_catalog_of_format_1_is_read_and_kept_until_the_first_change() -> None:
    disk = MemoryDisk()
    write_format_1(disk)
    before = bytes(disk.content(CATALOG))

    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)
    catalog.close(NOW)
    assert bytes(disk.content(CATALOG)) == before

    catalog = open_catalog(disk)
    assert (catalog.cluster_id, get_log(catalog).end_offset) == ("old", 1)
    catalog.create_topic(OTHER, IDS[0], 1, {})
    disk.power_off()

    catalog = open_catalog(disk)
    assert [topic.name for topic in catalog.topics] == [TOPIC, OTHER]
    assert catalog.reserve_producer_ids(1) == 7
    assert json.loads(bytes(disk.content(CATALOG)))["format"] == 2


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_crash_at_any_step_of_the_first_change_of_format_1(seed: int | None) -> None:
    prepared = MemoryDisk()
    write_format_1(prepared)

    crash_at = 0
    while True:
        disk = copy.deepcopy(prepared)
        catalog = None
        try:
            catalog = open_catalog(CrashingDisk(disk, crash_at))
            catalog.create_topic(OTHER, IDS[0], 1, {})
        except Crash:
            disk.power_off(seed)
        else:
            break
        assert [topic.name for topic in open_catalog(disk).topics] in ([TOPIC], [TOPIC, OTHER])
        crash_at += 1
    assert crash_at > 5


def test_changes_on_a_full_disk_fail_alone() -> None:
    for free_bytes in range(0, 400, 3):
        disk = MemoryDisk()
        full = FullDisk(disk, 1 << 30)
        catalog = open_catalog(full)
        full.free_bytes = free_bytes
        created = []
        for number in range(4):
            with suppress(StorageError):
                catalog.create_topic(Topic(f"t{number}"), IDS[number], 1, {})
                created.append(f"t{number}")
        assert len(created) < 4

        # A smaller change may fit although a larger one did not.
        full.free_bytes = 100
        if created:
            catalog.delete_topic(Topic(created.pop()))
        disk.kill()

        assert [topic.name for topic in open_catalog(disk).topics] == created


def test_change_whose_sync_failed_is_not_made_by_a_later_one() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, IDS[0], 1, {})
    disk.kill()
    failing = UnsyncableDisk(disk)
    catalog = open_catalog(failing)
    failing.is_failing = True
    with pytest.raises(StorageError):
        catalog.create_topic(OTHER, IDS[1], 1, {})
    failing.is_failing = False

    catalog.create_topic(Topic("third"), IDS[2], 1, {})
    disk.power_off()

    assert [topic.name for topic in open_catalog(disk).topics] == [TOPIC, "third"]


class UnsyncableDisk(CrashingDisk):
    """Every sync of a file fails while `is_failing`, but not the one of an atomic write."""

    is_failing = False

    def open(self, path: str) -> "_UnsyncableFile":  # type: ignore[override]  # its syncs fail
        return _UnsyncableFile(self, super().open(path))


class _UnsyncableFile:
    def __init__(self, disk: UnsyncableDisk, file: File) -> None:
        self._disk = disk
        self._file = file
        self.append = file.append
        self.read = file.read
        self.truncate = file.truncate
        self.size = file.size
        self.close = file.close

    def sync(self) -> None:
        if self._disk.is_failing:
            raise StorageError(JOURNAL, "sync", "Input/output error")
        self._file.sync()
