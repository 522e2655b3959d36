"""The catalog: topics come and go, settings change, and a directory is used by one alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.catalog_file import KeptTopic
from kohort.log.errors import DirectoryRefused, Refused, StorageError
from kohort.log.osdisk import OsDisk
from kohort.types import ErrorCode, Millis, Offset, Topic, Uuid
from tests.log.disks import ForgetfulDisk
from tests.log.logs import (
    NOW,
    TOPIC,
    TOPIC_ID,
    file_names,
    get_log,
    numbered_batch,
    open_catalog,
    opened,
)

OTHER_ID = Uuid(b"o" * 16)


def code_of(refused: pytest.ExceptionInfo[Refused]) -> ErrorCode:
    return refused.value.code


def test_a_topic_is_found_by_name_and_by_id() -> None:
    catalog = open_catalog(ForgetfulDisk())

    topic = catalog.create_topic(TOPIC, TOPIC_ID, 2, {"retention.ms": "5"}, NOW)

    assert topic == KeptTopic(
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
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {"max.message.bytes": "200"}, NOW)
    topics = catalog.topics
    catalog.close(NOW)

    catalog, recovered = Catalog.open(tmp_path, NOW, cluster_id="another")

    assert catalog.topics == topics
    assert catalog.cluster_id == "a-cluster"
    assert recovered == ()
    log = catalog.partition(TOPIC, 1)
    assert log is not None
    assert log.settings.max_message_bytes == 200
    catalog.close(NOW)


def test_the_catalog_is_a_file_one_can_read(tmp_path: Path) -> None:
    with opened(tmp_path, {"cleanup.policy": "compact"}):
        content = json.loads((tmp_path / "kohort-catalog.json").read_text())

    assert content.pop("cluster_id")
    assert content == {
        "format": 1,
        "next_producer_id": 0,
        "topics": {
            TOPIC: {
                "topic_id": "AAECAwQFBgcICQoLDA0ODw",
                "partitions": 1,
                "settings": {"cleanup.policy": "compact"},
            }
        },
        "deleting": [],
    }


def test_a_cluster_without_an_id_gets_one_from_its_place_and_time() -> None:
    ids = [Catalog.open(ForgetfulDisk(), now)[0].cluster_id for now in (NOW, NOW, Millis(5))]

    assert ids[0] == ids[1] != ids[2]
    assert len(ids[0]) == 22


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "a\n"])
def test_a_name_that_is_no_topics_is_refused(name: str) -> None:
    catalog = open_catalog(ForgetfulDisk())

    with pytest.raises(Refused) as refused:
        catalog.create_topic(Topic(name), TOPIC_ID, 1, {}, NOW)

    assert code_of(refused) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_longest_name_can_be_made_and_deleted(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    name = Topic("x" * 249)

    catalog.create_topic(name, TOPIC_ID, 11, {}, NOW)
    catalog.delete_topic(name)

    assert not [each for each in file_names(tmp_path, "") if each.startswith("x")]
    catalog.close(NOW)


def test_what_cannot_be_is_refused() -> None:
    catalog = open_catalog(ForgetfulDisk())
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {}, NOW)
    other = Topic("other")

    with pytest.raises(Refused) as refused:
        catalog.create_topic(TOPIC, OTHER_ID, 1, {}, NOW)
    assert code_of(refused) is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(Refused) as refused:
        catalog.create_topic(other, OTHER_ID, 0, {}, NOW)
    assert code_of(refused) is ErrorCode.INVALID_PARTITIONS
    with pytest.raises(Refused) as refused:
        catalog.create_topic(other, OTHER_ID, 1, {"retention": "1"}, NOW)
    assert code_of(refused) is ErrorCode.INVALID_CONFIG
    with pytest.raises(Refused) as refused:
        catalog.add_partitions(TOPIC, 2, NOW)
    assert code_of(refused) is ErrorCode.INVALID_PARTITIONS
    with pytest.raises(Refused) as refused:
        catalog.alter_settings(TOPIC, {"retention.ms": "-2"})
    assert code_of(refused) is ErrorCode.INVALID_CONFIG
    for change in (
        lambda: catalog.delete_topic(other),
        lambda: catalog.add_partitions(other, 9, NOW),
        lambda: catalog.alter_settings(other, {}),
    ):
        with pytest.raises(Refused) as refused:
            change()
        assert code_of(refused) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [topic.name for topic in catalog.topics] == [TOPIC]


def test_a_topic_grows_and_keeps_what_it_has(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    get_log(catalog).append(numbered_batch(0), NOW)

    topic = catalog.add_partitions(TOPIC, 3, NOW)

    assert topic.partition_count == 3
    assert catalog.find_topic_by_id(TOPIC_ID) == topic
    catalog.close(NOW)
    catalog = open_catalog(tmp_path)
    ends = [log.end_offset for each in range(3) if (log := catalog.partition(TOPIC, each))]
    assert ends == [1, 0, 0]
    catalog.close(NOW)


def test_new_settings_hold_at_once_and_after_a_restart() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, {"retention.ms": "5"})

    catalog.alter_settings(TOPIC, {"max.message.bytes": "10"})

    with pytest.raises(Refused):
        log.append(numbered_batch(0), NOW)
    assert log.settings.retention_ms == 7 * 24 * 60 * 60_000
    catalog.close(NOW)
    with opened(disk) as log:
        assert log.settings.max_message_bytes == 10


def test_defaults_hold_where_a_topic_has_no_setting() -> None:
    catalog, _ = Catalog.open(ForgetfulDisk(), NOW, {"max.message.bytes": "10"})
    assert get_log(catalog).settings.max_message_bytes == 10

    catalog.alter_settings(TOPIC, {"max.message.bytes": "20"})

    assert get_log(catalog).settings.max_message_bytes == 20


def test_a_default_that_cannot_be_is_refused() -> None:
    with pytest.raises(Refused):
        Catalog.open(ForgetfulDisk(), NOW, {"max.message.size": "10"})


def test_a_deleted_topic_leaves_nothing(tmp_path: Path) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    log = get_log(catalog)
    log.append(numbered_batch(0, records=5), NOW)
    log.delete_before(Offset(3))

    catalog.delete_topic(TOPIC)

    assert catalog.find_topic(TOPIC) is None
    assert catalog.find_topic_by_id(TOPIC_ID) is None
    assert catalog.partition(TOPIC, 0) is None
    assert not [name for name in file_names(tmp_path, "") if name.startswith(TOPIC)]
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    catalog.create_topic(TOPIC, OTHER_ID, 1, {}, NOW)
    assert (get_log(catalog).start_offset, get_log(catalog).end_offset) == (0, 0)
    catalog.close(NOW)
    with opened(tmp_path) as log:
        assert (log.start_offset, log.end_offset) == (0, 0)


def test_what_is_noted_of_topics_that_are_gone_is_forgotten(tmp_path: Path) -> None:
    open_catalog(tmp_path).close(NOW)
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.write_text(f"0\n1\n{TOPIC} 0 500\n")

    open_catalog(tmp_path).close(NOW)

    assert checkpoint.read_text() == "0\n0\n"


def test_what_a_deletion_has_left_goes_at_the_next_start(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append(numbered_batch(0), NOW)
    for name in (f"gone-0.{'ab' * 16}-delete", f"gone-12.{'ab' * 16}-delete"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").write_bytes(b"x")

    with opened(tmp_path) as log:
        assert log.end_offset == 1

    assert not [name for name in file_names(tmp_path, "") if "gone" in name]


def test_deletion_goes_on_at_the_next_start_if_the_disk_failed() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)
    rename = disk.rename

    def fail(old: str, new: str) -> None:
        if old.startswith(TOPIC):
            raise StorageError(old, "rename", new)
        rename(old, new)

    disk.rename = fail  # type: ignore[method-assign]  # a disk that fails
    catalog.delete_topic(TOPIC)
    assert catalog.find_topic(TOPIC) is None
    assert f"{TOPIC}-0" in disk.list("")
    disk.kill()
    disk.rename = rename  # type: ignore[method-assign]  # and is well again

    catalog, recovered = Catalog.open(disk, NOW)

    assert recovered == ()
    assert catalog.topics == ()
    assert f"{TOPIC}-0" not in disk.list("")


def test_producer_ids_are_never_given_twice() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    assert catalog.reserve_producer_ids(1000) == 0
    assert catalog.reserve_producer_ids(10) == 1000

    disk.power_off()

    assert open_catalog(disk).reserve_producer_ids(1) == 1010


# Whose directory it is


def test_a_directory_is_made_if_it_is_missing(tmp_path: Path) -> None:
    with opened(tmp_path / "a" / "b") as log:
        log.append(numbered_batch(0), NOW)

    assert (tmp_path / "a" / "b" / f"{TOPIC}-0").is_dir()


def test_kafkas_own_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")

    with pytest.raises(DirectoryRefused, match=r"belongs to Apache Kafka: it holds meta\.prop"):
        open_catalog(tmp_path)

    assert file_names(tmp_path, "") == ["meta.properties"]


def test_somebody_elses_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("Dear")

    with pytest.raises(DirectoryRefused, match=r"not empty .* the first thing in it is letters"):
        open_catalog(tmp_path)

    assert file_names(tmp_path, "") == ["letters.txt"]


def test_a_fresh_file_system_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()

    with opened(tmp_path) as log:
        assert log.end_offset == 0


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"format": 2, "anything": 1}', "has format 2, from a newer version; this one knows 1"),
        ("{", "is damaged"),
        ("{}", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 1, "cluster_id": "", "topics": {"t": {"topic_id": "?"}}}', "is damaged"),
    ],
)
def test_a_catalog_that_cannot_be_read_is_refused(
    content: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "kohort-catalog.json").write_text(content)

    with pytest.raises(DirectoryRefused, match=complaint):
        open_catalog(tmp_path)

    assert (tmp_path / "kohort-catalog.json").read_text() == content


def test_another_topics_partition_is_not_taken_over(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append(numbered_batch(0), NOW)
    metadata = tmp_path / f"{TOPIC}-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: b29vb29vb29vb29vb29vbw")

    with pytest.raises(DirectoryRefused, match="belongs to another topic of the same name"):
        open_catalog(tmp_path)


def test_a_second_opener_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)

    with pytest.raises(DirectoryRefused, match="is in use by another process"):
        open_catalog(tmp_path)

    catalog.close(NOW)
    open_catalog(tmp_path).close(NOW)


def test_another_process_is_refused_as_well(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    code = "import sys; from kohort.log.catalog import Catalog; Catalog.open(sys.argv[1], 0)"

    finished = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert finished.returncode == 1
    assert f"{tmp_path} is in use by another process" in finished.stderr
    catalog.close(NOW)


def test_a_failed_start_frees_the_directory(tmp_path: Path) -> None:
    (tmp_path / "kohort-catalog.json").write_text("{")
    with pytest.raises(DirectoryRefused):
        open_catalog(tmp_path)
    (tmp_path / "kohort-catalog.json").unlink()

    open_catalog(tmp_path).close(NOW)


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DirectoryRefused, match="cannot be used: File exists"):
        open_catalog(tmp_path / "file")


def test_a_directory_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system_open = os.open

    def read_only(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, os.strerror(30))
        return system_open(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only)

    with pytest.raises(DirectoryRefused, match=f"{tmp_path} cannot be used: Read-only file system"):
        Catalog.open(OsDisk(tmp_path), NOW)


def test_closing_reports_a_disk_that_failed_and_claims_nothing() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    get_log(catalog).append(numbered_batch(0), NOW)

    def fail(path: str) -> None:
        raise StorageError(path, "sync directory", "Input/output error")

    disk.sync_directory = fail  # type: ignore[method-assign]  # a disk that fails
    with pytest.raises(StorageError):
        catalog.close(NOW)

    assert ".kafka_cleanshutdown" not in disk.list("")


def test_one_partition_that_fails_does_not_keep_others_from_cleaning() -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    settings = {"retention.ms": "1", "internal.segment.bytes": "100"}
    catalog.create_topic(TOPIC, TOPIC_ID, 2, settings, NOW)
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
