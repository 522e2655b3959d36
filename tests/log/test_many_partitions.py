"""Many topics and partitions: no work for those that are not used, and long work in steps."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from kohort.log.catalog import Catalog
from kohort.log.catalog_file import CatalogTopic
from kohort.log.errors import RequestRejected, StorageError
from kohort.types import ErrorCode, Millis, Offset, Topic, Uuid
from tests.log.faulty_disks import CrashingDisk, FullDisk, MemoryDisk
from tests.log.log_setup import NOW, TOPIC, TOPIC_ID, numbered_batch, open_catalog

OTHER_ID = Uuid(b"o" * 16)


def new_topics(count: int) -> list[CatalogTopic]:
    return [
        CatalogTopic(
            name=Topic(f"t{each}"),
            topic_id=Uuid(each.to_bytes(16)),
            partition_count=1,
            settings={},
        )
        for each in range(1, count + 1)
    ]


def append(catalog: Catalog, topic: Topic, partition: int) -> None:
    log = catalog.partition(topic, partition)
    assert log is not None
    log.append(numbered_batch(0), NOW)


def directories(disk: MemoryDisk) -> list[str]:
    return sorted(name for name, size in disk.list("").items() if size < 0)


def sync(catalog: Catalog) -> None:
    for each in catalog.take_pending_syncs():
        each.sync()


@pytest.mark.parametrize("count", [1, 500])
def test_number_of_disk_changes_for_new_topics_does_not_depend_on_their_number(count: int) -> None:
    disk = CrashingDisk(MemoryDisk())
    catalog = open_catalog(disk)
    before = disk.changes

    catalog.create_topics(new_topics(count))
    catalog.create_topic(TOPIC, TOPIC_ID, 1_000 * count, {})

    # Each call is one append and one sync.
    assert disk.changes - before == 4
    assert len(catalog.topics) == count + 1


def test_journal_grows_by_the_change_only() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topics(new_topics(500))
    before = len(disk.content("kohort-catalog.journal"))

    catalog.create_topic(TOPIC, TOPIC_ID, 1, {})

    assert len(disk.content("kohort-catalog.journal")) - before < 200


def test_one_invalid_topic_refuses_all() -> None:
    catalog = open_catalog(MemoryDisk())
    catalog.create_topic(TOPIC, TOPIC_ID, 1, {})
    taken = CatalogTopic(name=TOPIC, topic_id=OTHER_ID, partition_count=1, settings={})

    with pytest.raises(RequestRejected) as rejected:
        catalog.create_topics([*new_topics(3), taken])

    assert rejected.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert [topic.name for topic in catalog.topics] == [TOPIC]


def test_only_written_partitions_have_a_directory() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, 5, {})
    log = catalog.partition(TOPIC, 2)
    assert log is not None
    assert log.read(Offset(0), 100, at_least_one=True) == b""
    assert log.find_max_timestamp() is None
    assert log.find_by_timestamp(NOW) is None
    assert (log.start_offset, log.end_offset, log.size_bytes) == (0, 0, 0)
    assert log.delete_before(Offset(0)) == 0
    catalog.clean(NOW)
    assert directories(disk) == []

    log.append(numbered_batch(0), NOW)

    assert directories(disk) == [f"{TOPIC}-2"]
    catalog.close(NOW)
    catalog = open_catalog(disk)
    ends = [log.end_offset for each in range(5) if (log := catalog.partition(TOPIC, each))]
    assert ends == [0, 0, 1, 0, 0]
    assert directories(disk) == [f"{TOPIC}-2"]


def test_first_synced_record_of_a_partition_survives_a_power_failure() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {})
    append(catalog, TOPIC, 1)

    sync(catalog)
    disk.power_off()

    log = open_catalog(disk).partition(TOPIC, 1)
    assert log is not None
    assert log.end_offset == 1


def test_no_checkpoint_survives_without_the_directory_it_is_about() -> None:
    for seed in range(40):
        disk = MemoryDisk()
        catalog = open_catalog(disk)
        catalog.create_topic(TOPIC, TOPIC_ID, 1, {})
        append(catalog, TOPIC, 0)
        log = catalog.partition(TOPIC, 0)
        assert log is not None
        log.delete_before(Offset(1))

        disk.power_off(seed)

        if "log-start-offset-checkpoint" in disk.list(""):
            assert directories(disk) == [f"{TOPIC}-0"]


def test_first_append_that_failed_on_a_full_disk_succeeds_later() -> None:
    for free_bytes in range(300):
        disk = MemoryDisk()
        full = FullDisk(disk, 1 << 30)
        catalog = open_catalog(full)
        catalog.create_topic(TOPIC, TOPIC_ID, 1, {})
        full.free_bytes = free_bytes
        try:
            append(catalog, TOPIC, 0)
        except StorageError:
            full.free_bytes = 1 << 30
            append(catalog, TOPIC, 0)
        full.free_bytes = 1 << 30
        if free_bytes % 2:
            catalog.close(NOW)
        else:
            disk.kill()

        log = open_catalog(disk).partition(TOPIC, 0)
        assert log is not None
        assert log.end_offset == 1


# Deletion


def written_topic(disk: MemoryDisk, partitions: int) -> Catalog:
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, partitions, {})
    for each in range(partitions):
        append(catalog, TOPIC, each)
    return catalog


def test_deleted_topic_is_removed_in_steps() -> None:
    disk = MemoryDisk()
    catalog = written_topic(disk, 100)
    counted = [len(directories(disk))]

    catalog.delete_topic(TOPIC)
    assert directories(disk) == sorted(f"{TOPIC}-{each}" for each in range(100))
    while not catalog.clean(NOW, budget_bytes=1000).is_done:
        counted.append(len(directories(disk)))

    assert directories(disk) == []
    assert max(a - b for a, b in pairwise(counted)) <= 4


def test_topics_are_deleted_by_one_change() -> None:
    disk = CrashingDisk(MemoryDisk())
    catalog = open_catalog(disk)
    topics = new_topics(300)
    catalog.create_topics(topics)
    before = disk.changes

    catalog.delete_topics([topic.name for topic in topics])

    assert disk.changes - before == 2
    assert catalog.topics == ()


def test_unknown_topic_refuses_the_deletion_of_all() -> None:
    catalog = open_catalog(MemoryDisk())
    catalog.create_topic(TOPIC, TOPIC_ID, 1, {})

    with pytest.raises(RequestRejected):
        catalog.delete_topics([TOPIC, Topic("unknown")])

    assert catalog.find_topic(TOPIC) is not None


def test_topic_can_be_created_again_while_its_directories_are_removed() -> None:
    disk = MemoryDisk()
    catalog = written_topic(disk, 200)
    catalog.delete_topic(TOPIC)
    catalog.clean(NOW, budget_bytes=1000)

    catalog.create_topic(TOPIC, OTHER_ID, 200, {})
    append(catalog, TOPIC, 7)
    sync(catalog)
    disk.power_off()

    catalog = open_catalog(disk)
    catalog.clean(NOW)
    assert directories(disk) == [f"{TOPIC}-7"]
    ends = [log.end_offset for each in range(200) if (log := catalog.partition(TOPIC, each))]
    assert ends == [each == 7 for each in range(200)]


def test_name_is_reserved_while_a_topic_is_created_in_steps() -> None:
    disk = MemoryDisk()
    catalog = written_topic(disk, 200)
    catalog.delete_topic(TOPIC)
    again = CatalogTopic(name=TOPIC, topic_id=OTHER_ID, partition_count=1, settings={})

    steps = catalog.create_topics_stepwise([again])
    next(steps)
    with pytest.raises(RequestRejected) as rejected:
        catalog.create_topic(TOPIC, Uuid(b"x" * 16), 1, {})
    assert rejected.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert catalog.find_topic(TOPIC) is None
    rest = len([*steps])

    assert rest > 1
    assert catalog.find_topic(TOPIC) == again


def test_abandoned_creation_frees_the_name() -> None:
    catalog = written_topic(MemoryDisk(), 200)
    catalog.delete_topic(TOPIC)
    again = CatalogTopic(name=TOPIC, topic_id=OTHER_ID, partition_count=1, settings={})
    steps: Iterator[None] = catalog.create_topics_stepwise([again])
    next(steps)

    del steps

    catalog.create_topic(TOPIC, OTHER_ID, 1, {})
    assert catalog.find_topic(TOPIC) is not None


# Cleaning and stopping


def test_cleaning_of_many_partitions_takes_several_calls() -> None:
    disk = CrashingDisk(MemoryDisk())
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, 200, {"retention.ms": "1"})
    for each in range(200):
        append(catalog, TOPIC, each)
    later = Millis(NOW + 10_000)

    removed = []
    while True:
        result = catalog.clean(later, budget_bytes=1000)
        removed.append(len(result.partitions))
        if result.is_done:
            break

    assert sum(removed) == 200
    assert max(removed) <= 32


def test_clean_stop_does_nothing_for_partitions_that_were_not_written_since_a_clean_start() -> None:
    disk = MemoryDisk()
    written_topic(disk, 50).close(NOW)
    counting = CrashingDisk(disk)
    catalog = open_catalog(counting)
    append(catalog, TOPIC, 3)
    before = counting.changes

    catalog.close(NOW)

    assert counting.changes - before < 30
    catalog = open_catalog(disk)
    ends = [log.end_offset for each in range(50) if (log := catalog.partition(TOPIC, each))]
    assert ends == [1 + (each == 3) for each in range(50)]


def test_restart_after_a_kill_syncs_nothing_that_was_checkpointed() -> None:
    disk = MemoryDisk()
    catalog = written_topic(disk, 50)
    sync(catalog)
    catalog.clean(NOW)
    disk.kill()
    counting = CrashingDisk(disk)

    open_catalog(counting)

    assert counting.changes < 5
