"""The catalog: topic creation, changes and deletion, and the lock of the data directory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.catalog_file import CatalogTopic
from kohort.log.errors import DataDirectoryError, RequestRejected, StorageError
from kohort.log.os_disk import OsDisk
from kohort.types import ErrorCode, Millis, Offset, Topic, Uuid
from kohort.wire.batch_header import checksum
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    TOPIC,
    TOPIC_ID,
    file_names,
    get_log,
    numbered_batch,
    open_catalog,
    open_log,
    open_with_repairs,
)

OTHER_ID = Uuid(b"o" * 16)


def code_of(rejected: pytest.ExceptionInfo[RequestRejected]) -> ErrorCode:
    return rejected.value.code


def test_find_topic_by_name_and_by_id() -> None:
    catalog = open_catalog(MemoryDisk())

    topic = catalog.create_topic(TOPIC, TOPIC_ID, 2, {"retention.ms": "5"})

    assert topic == CatalogTopic(
        name=TOPIC, topic_id=TOPIC_ID, partition_count=2, settings={"retention.ms": "5"}
    )
    assert catalog.find_topic(TOPIC) is topic
    assert catalog.find_topic_by_id(TOPIC_ID) is topic
    assert catalog.topics == (topic,)
    assert catalog.find_topic(Topic("other")) is None
    assert catalog.find_topic_by_id(OTHER_ID) is None
    assert [catalog.partition(TOPIC, each) is None for each in (-1, 0, 1, 2)] == [
        True,
        False,
        False,
        True,
    ]


def test_topics_and_their_settings_survive_a_restart(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW, cluster_id="a-cluster")
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {"max.message.bytes": "200"})
    topics = catalog.topics
    catalog.close(NOW)

    catalog, repairs = Catalog.open(tmp_path, NOW, cluster_id="another")

    assert catalog.topics == topics
    assert catalog.cluster_id == "a-cluster"
    assert repairs == ()
    log = catalog.partition(TOPIC, 1)
    assert log is not None
    assert log.settings.max_message_bytes == 200
    catalog.close(NOW)


def test_catalog_file_format(tmp_path: Path) -> None:
    with open_log(tmp_path, {"cleanup.policy": "compact"}):
        content = json.loads((tmp_path / "kohort-catalog.json").read_text())
        line = (tmp_path / "kohort-catalog.journal").read_bytes()

    assert content.pop("cluster_id")
    assert content.pop("crc32c")
    assert content == {
        "format": 2,
        "sequence": 0,
        "next_producer_id": 0,
        "topics": {},
        "deleting": [],
    }
    crc, _, text = line.partition(b" ")
    assert int(crc, 16) == checksum(text.removesuffix(b"\n"))
    assert json.loads(text) == {
        "sequence": 1,
        "topics": {
            TOPIC: {
                "topic_id": "AAECAwQFBgcICQoLDA0ODw",
                "partitions": 1,
                "settings": {"cleanup.policy": "compact"},
            }
        },
    }


def test_cluster_id_is_derived_from_directory_and_time() -> None:
    ids = [Catalog.open(MemoryDisk(), now)[0].cluster_id for now in (NOW, NOW, Millis(5))]

    assert ids[0] == ids[1] != ids[2]
    assert len(ids[0]) == 22


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "a\n"])
def test_invalid_topic_name_is_rejected(name: str) -> None:
    catalog = open_catalog(MemoryDisk())

    with pytest.raises(RequestRejected) as rejected:
        catalog.create_topic(Topic(name), TOPIC_ID, 1, {})

    assert code_of(rejected) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_topic_with_the_longest_name_can_be_created_and_deleted(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    name = Topic("x" * 249)

    catalog.create_topic(name, TOPIC_ID, 11, {})
    log = catalog.partition(name, 10)
    assert log is not None
    log.append(numbered_batch(0), NOW)
    catalog.delete_topic(name)
    catalog.clean(NOW)

    assert not [each for each in file_names(tmp_path, "") if each.startswith("x")]
    catalog.close(NOW)


def test_invalid_topic_changes_are_rejected() -> None:
    catalog = open_catalog(MemoryDisk())
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {})
    other = Topic("other")

    with pytest.raises(RequestRejected) as rejected:
        catalog.create_topic(TOPIC, OTHER_ID, 1, {})
    assert code_of(rejected) is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(RequestRejected) as rejected:
        catalog.create_topic(other, OTHER_ID, 0, {})
    assert code_of(rejected) is ErrorCode.INVALID_PARTITIONS
    with pytest.raises(RequestRejected) as rejected:
        catalog.create_topic(other, OTHER_ID, 1, {"retention": "1"})
    assert code_of(rejected) is ErrorCode.INVALID_CONFIG
    with pytest.raises(RequestRejected) as rejected:
        catalog.add_partitions(TOPIC, 2)
    assert code_of(rejected) is ErrorCode.INVALID_PARTITIONS
    with pytest.raises(RequestRejected) as rejected:
        catalog.alter_settings(TOPIC, {"retention.ms": "-2"})
    assert code_of(rejected) is ErrorCode.INVALID_CONFIG
    for change in (
        lambda: catalog.delete_topic(other),
        lambda: catalog.add_partitions(other, 9),
        lambda: catalog.alter_settings(other, {}),
    ):
        with pytest.raises(RequestRejected) as rejected:
            change()
        assert code_of(rejected) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [topic.name for topic in catalog.topics] == [TOPIC]


def test_add_partitions_keeps_existing_records(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    get_log(catalog).append(numbered_batch(0), NOW)

    topic = catalog.add_partitions(TOPIC, 3)

    assert topic.partition_count == 3
    assert catalog.find_topic_by_id(TOPIC_ID) == topic
    catalog.close(NOW)
    catalog = open_catalog(tmp_path)
    ends = [log.end_offset for each in range(3) if (log := catalog.partition(TOPIC, each))]
    assert ends == [1, 0, 0]
    catalog.close(NOW)


def test_altered_settings_apply_immediately_and_after_a_restart() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, {"retention.ms": "5"})

    catalog.alter_settings(TOPIC, {"max.message.bytes": "10"})

    with pytest.raises(RequestRejected):
        log.append(numbered_batch(0), NOW)
    assert log.settings.retention_ms == 7 * 24 * 60 * 60_000
    catalog.close(NOW)
    with open_log(disk) as log:
        assert log.settings.max_message_bytes == 10


def test_defaults_apply_without_an_override() -> None:
    catalog, _ = Catalog.open(MemoryDisk(), NOW, {"max.message.bytes": "10"})
    assert get_log(catalog).settings.max_message_bytes == 10

    catalog.alter_settings(TOPIC, {"max.message.bytes": "20"})

    assert get_log(catalog).settings.max_message_bytes == 20


def test_invalid_default_is_rejected() -> None:
    with pytest.raises(RequestRejected):
        Catalog.open(MemoryDisk(), NOW, {"max.message.size": "10"})


def test_delete_topic_removes_all_files(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    log = get_log(catalog)
    log.append(numbered_batch(0, records=5), NOW)
    log.delete_before(Offset(3))

    catalog.delete_topic(TOPIC)

    assert catalog.find_topic(TOPIC) is None
    assert catalog.find_topic_by_id(TOPIC_ID) is None
    assert catalog.partition(TOPIC, 0) is None
    catalog.clean(NOW)
    assert not [name for name in file_names(tmp_path, "") if name.startswith(TOPIC)]
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    catalog.create_topic(TOPIC, OTHER_ID, 1, {})
    assert (get_log(catalog).start_offset, get_log(catalog).end_offset) == (0, 0)
    catalog.close(NOW)
    with open_log(tmp_path) as log:
        assert (log.start_offset, log.end_offset) == (0, 0)


def test_checkpoint_entries_of_unknown_topics_are_removed(tmp_path: Path) -> None:
    open_catalog(tmp_path).close(NOW)
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.write_text(f"0\n1\n{TOPIC} 0 500\n")

    open_catalog(tmp_path).close(NOW)

    assert checkpoint.read_text() == "0\n0\n"


def test_start_removes_directories_marked_for_deletion(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(numbered_batch(0), NOW)
    for name in (f"gone-0.{'ab' * 16}-delete", f"gone-12.{'ab' * 16}-delete"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").write_bytes(b"x")

    catalog = open_catalog(tmp_path)
    catalog.clean(NOW)

    assert get_log(catalog).end_offset == 1
    assert not [name for name in file_names(tmp_path, "") if "gone" in name]
    catalog.close(NOW)


def test_start_completes_a_topic_deletion_that_failed() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)
    rename = disk.rename

    def fail(old: str, new: str) -> None:
        if old.startswith(TOPIC):
            raise StorageError(old, "rename", new)
        rename(old, new)

    disk.rename = fail  # type: ignore[method-assign]  # inject a failure
    catalog.delete_topic(TOPIC)
    assert catalog.clean(NOW).failure is not None
    assert catalog.find_topic(TOPIC) is None
    assert f"{TOPIC}-0" in disk.list("")
    disk.kill()
    disk.rename = rename  # type: ignore[method-assign]  # end of the failure

    catalog, repairs = Catalog.open(disk, NOW)

    assert repairs == ()
    assert catalog.topics == ()
    assert f"{TOPIC}-0" not in disk.list("")


def test_producer_ids_are_never_reserved_twice() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    assert catalog.reserve_producer_ids(1000) == 0
    assert catalog.reserve_producer_ids(10) == 1000

    disk.power_off()

    assert open_catalog(disk).reserve_producer_ids(1) == 1010


# Data directory


def test_missing_data_directory_is_created(tmp_path: Path) -> None:
    with open_log(tmp_path / "a" / "b") as log:
        log.append(numbered_batch(0), NOW)

    assert (tmp_path / "a" / "b" / f"{TOPIC}-0").is_dir()


def test_kafka_data_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")

    with pytest.raises(
        DataDirectoryError, match=r"belongs to Apache Kafka: it contains meta\.prop"
    ):
        open_catalog(tmp_path)

    assert file_names(tmp_path, "") == ["meta.properties"]


def test_foreign_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("Dear")

    with pytest.raises(
        DataDirectoryError, match=r"not a Kohort data directory: .* contains letters"
    ):
        open_catalog(tmp_path)

    assert file_names(tmp_path, "") == ["letters.txt"]


def test_new_file_system_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()

    with open_log(tmp_path) as log:
        assert log.end_offset == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": 3, "anything": 1}', "has format 3, written by a newer version of Kohort"),
        ("{", "is corrupt"),
        ("{}", "is corrupt"),
        ("[]", "is corrupt"),
        ('{"format": 1, "cluster_id": "", "topics": {"t": {"topic_id": "?"}}}', "is corrupt"),
    ],
)
def test_invalid_catalog_file_is_rejected(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "kohort-catalog.json").write_text(content)

    with pytest.raises(DataDirectoryError, match=message):
        open_catalog(tmp_path)

    assert (tmp_path / "kohort-catalog.json").read_text() == content


def test_partition_directory_of_another_topic_id_is_refused(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(numbered_batch(0), NOW)
    metadata = tmp_path / f"{TOPIC}-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: b29vb29vb29vb29vb29vbw")

    catalog, (refused,) = open_with_repairs(tmp_path)

    assert "belongs to another topic of the same name" in refused.reason
    assert get_log(catalog).is_refused


def test_data_directory_is_locked_until_close(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)

    with pytest.raises(DataDirectoryError, match="is in use by another process"):
        open_catalog(tmp_path)

    catalog.close(NOW)
    open_catalog(tmp_path).close(NOW)


def test_data_directory_is_locked_for_other_processes(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    code = "import sys; from kohort.log.catalog import Catalog; Catalog.open(sys.argv[1], 0)"

    finished = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert finished.returncode == 1
    assert f"{tmp_path} is in use by another process" in finished.stderr
    catalog.close(NOW)


def test_failed_start_releases_the_lock(tmp_path: Path) -> None:
    (tmp_path / "kohort-catalog.json").write_text("{")
    with pytest.raises(DataDirectoryError):
        open_catalog(tmp_path)
    (tmp_path / "kohort-catalog.json").unlink()

    open_catalog(tmp_path).close(NOW)


def test_file_as_data_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirectoryError, match="cannot be used: File exists"):
        open_catalog(tmp_path / "file")


def test_read_only_directory_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system_open = os.open

    def read_only(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, os.strerror(30))
        return system_open(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only)

    with pytest.raises(
        DataDirectoryError, match=f"{tmp_path} cannot be used: Read-only file system"
    ):
        Catalog.open(OsDisk(tmp_path), NOW)


def test_failed_close_is_not_a_clean_shutdown() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)

    def fail(path: str) -> None:
        raise StorageError(path, "sync directory", "Input/output error")

    disk.sync_directory = fail  # type: ignore[method-assign]  # a disk that fails
    with pytest.raises(StorageError):
        catalog.close(NOW)

    assert ".kafka_cleanshutdown" not in disk.list("")


def test_cleaning_continues_after_a_partition_failed() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    settings = {"retention.ms": "1", "internal.segment.bytes": "100"}
    catalog.create_topic(TOPIC, TOPIC_ID, 2, settings)
    for each in range(2):
        log = catalog.partition(TOPIC, each)
        assert log is not None
        for number in range(3):
            log.append(numbered_batch(number), NOW)
    remove = disk.remove

    def fail(path: str) -> None:
        if path.startswith(f"{TOPIC}-0/"):
            raise StorageError(path, "remove", "Input/output error")
        remove(path)

    disk.remove = fail  # type: ignore[method-assign]  # a disk that fails

    cleaned = [each.cleaned for each in catalog.clean(Millis(NOW + 99)).partitions]

    assert cleaned[0].failure is not None
    assert cleaned[1].segments_removed == 3
