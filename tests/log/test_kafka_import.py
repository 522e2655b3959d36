"""Import of an Apache Kafka log directory: what is copied, skipped and rejected."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.log.catalog import Catalog
from kohort.log.catalog_file import CatalogTopic
from kohort.log.checkpoint import encode_uuid
from kohort.log.errors import DataDirectoryError
from kohort.log.kafka_import import import_kafka_directory
from kohort.types import Offset, Topic, Uuid
from kohort.wire.batch import split
from tests.log.log_setup import NOW, new_batch, numbered_batch

ORDERS = Topic("orders")
OFFSETS = Topic("__consumer_offsets")
IDS = {ORDERS: Uuid(b"o" * 16), OFFSETS: Uuid(b"c" * 16)}
EPOCH_AT = 12
LATER_EPOCH = 7


def batch_at(offset: int, epoch: int, data: bytes) -> bytes:
    """A batch with its offset and leader epoch in Kafka's log."""
    return struct.pack(">q", offset) + data[8:EPOCH_AT] + struct.pack(">i", epoch) + data[16:]


def write_partition(kafka: Path, topic: Topic, number: int, *batches: bytes) -> Path:
    directory = kafka / f"{topic}-{number}"
    directory.mkdir()
    metadata = f"version: 0\ntopic_id: {encode_uuid(IDS[topic])}\n"
    (directory / "partition.metadata").write_text(metadata, "utf-8")
    (directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 2\n", "utf-8")
    (directory / "00000000000000000000.log").write_bytes(b"".join(batches))
    (directory / "00000000000000000000.index").write_bytes(b"")
    return directory


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """The log directory of a stopped Kafka broker with two topics."""
    kafka = tmp_path / "kafka"
    kafka.mkdir()
    (kafka / "meta.properties").write_text("version=1\ncluster.id=some-cluster\n", "utf-8")
    (kafka / ".kafka_cleanshutdown").write_text("{}", "utf-8")
    (kafka / "log-start-offset-checkpoint").write_text("0\n1\norders 1 1\n", "utf-8")
    first = batch_at(0, 0, numbered_batch(0, records=2))
    second = batch_at(2, LATER_EPOCH, numbered_batch(1))
    write_partition(kafka, ORDERS, 0)
    write_partition(kafka, ORDERS, 1, first, second)
    write_partition(kafka, OFFSETS, 0)
    return kafka


def open_data(where: Path) -> Catalog:
    catalog, _ = Catalog.open(where, NOW)
    return catalog


def test_topics_keep_their_ids_and_partitions(kafka: Path, tmp_path: Path) -> None:
    result = import_kafka_directory(kafka, tmp_path / "data")

    catalog = open_data(tmp_path / "data")
    assert result.topics == {ORDERS: 2, OFFSETS: 1}
    assert catalog.cluster_id == "some-cluster"
    found = {topic.name: topic for topic in catalog.topics}
    assert found[ORDERS] == CatalogTopic(
        name=ORDERS, topic_id=IDS[ORDERS], partition_count=2, settings={}
    )
    assert found[OFFSETS].settings["cleanup.policy"] == "compact"


def test_only_the_leader_epoch_of_batches_changes(kafka: Path, tmp_path: Path) -> None:
    before = (kafka / "orders-1" / "00000000000000000000.log").read_bytes()

    import_kafka_directory(kafka, tmp_path / "data")

    after = (tmp_path / "data" / "orders-1" / "00000000000000000000.log").read_bytes()
    positions = [position for position, _ in split(before)]
    assert [header.partition_leader_epoch for _, header in split(before)] == [0, LATER_EPOCH]
    assert [header.partition_leader_epoch for _, header in split(after)] == [0, 0]
    at_epochs = {at + EPOCH_AT + byte for at in positions for byte in range(4)}
    changed = {at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
    assert changed <= at_epochs


def test_log_start_and_end_offsets_are_kept(kafka: Path, tmp_path: Path) -> None:
    import_kafka_directory(kafka, tmp_path / "data")

    log = open_data(tmp_path / "data").partition(ORDERS, 1)
    assert log is not None
    assert (log.start_offset, log.end_offset) == (Offset(1), Offset(3))


def test_new_producer_ids_are_above_the_imported_ones(kafka: Path, tmp_path: Path) -> None:
    batch = new_batch(producer_id=4711, producer_epoch=0, base_sequence=0)
    (kafka / "orders-0" / "00000000000000000000.log").write_bytes(batch_at(0, 0, batch))

    import_kafka_directory(kafka, tmp_path / "data")

    assert open_data(tmp_path / "data").reserve_producer_ids(1) == 4712


def test_internal_topics_of_kafka_are_not_copied(kafka: Path, tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "__transaction_state-0", "gone-0.abc-delete"):
        (kafka / name).mkdir()

    result = import_kafka_directory(kafka, tmp_path / "data")

    assert result.topics.keys() == {ORDERS, OFFSETS}


def test_batch_larger_than_the_read_size_is_copied(kafka: Path, tmp_path: Path) -> None:
    large = batch_at(0, LATER_EPOCH, numbered_batch(0, records=3, size=1 << 20))
    small = batch_at(3, LATER_EPOCH, numbered_batch(1))
    (kafka / "orders-0" / "00000000000000000000.log").write_bytes(large + small)

    import_kafka_directory(kafka, tmp_path / "data")

    log = open_data(tmp_path / "data").partition(ORDERS, 0)
    assert log is not None
    assert (log.end_offset, log.size_bytes) == (Offset(4), len(large + small))


def test_directory_without_meta_properties_is_rejected(kafka: Path, tmp_path: Path) -> None:
    (kafka / "meta.properties").unlink()

    with pytest.raises(DataDirectoryError, match=r"meta\.properties"):
        import_kafka_directory(kafka, tmp_path / "data")


def test_directory_without_clean_shutdown_is_rejected(kafka: Path, tmp_path: Path) -> None:
    (kafka / ".kafka_cleanshutdown").unlink()

    with pytest.raises(DataDirectoryError, match="in use"):
        import_kafka_directory(kafka, tmp_path / "data")


def test_missing_partition_is_rejected(kafka: Path, tmp_path: Path) -> None:
    write_partition(kafka, ORDERS, 3)

    with pytest.raises(DataDirectoryError, match="no partition 2 of topic orders"):
        import_kafka_directory(kafka, tmp_path / "data")


def test_two_topic_ids_for_one_name_are_rejected(kafka: Path, tmp_path: Path) -> None:
    other = f"version: 0\ntopic_id: {encode_uuid(Uuid(b'x' * 16))}\n"
    (kafka / "orders-1" / "partition.metadata").write_text(other, "utf-8")

    with pytest.raises(DataDirectoryError, match="two topics with the name orders"):
        import_kafka_directory(kafka, tmp_path / "data")


def test_topic_without_id_is_rejected(kafka: Path, tmp_path: Path) -> None:
    (kafka / "orders-1" / "partition.metadata").unlink()

    with pytest.raises(DataDirectoryError, match="has no topic id"):
        import_kafka_directory(kafka, tmp_path / "data")


@pytest.mark.parametrize("damage", [b"\0" * 70, b"\xff" * 5])
def test_corrupt_segment_is_rejected(kafka: Path, tmp_path: Path, damage: bytes) -> None:
    path = kafka / "orders-1" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes() + damage)

    with pytest.raises(DataDirectoryError, match=r"00000000000000000000\.log"):
        import_kafka_directory(kafka, tmp_path / "data")
    assert not (tmp_path / "data" / "kohort-catalog.json").exists()


def test_existing_data_directory_is_rejected(kafka: Path, tmp_path: Path) -> None:
    open_data(tmp_path / "data").close(NOW)

    with pytest.raises(DataDirectoryError, match="already contains topics"):
        import_kafka_directory(kafka, tmp_path / "data")


def test_command_output_and_exit_codes(kafka: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kohort.log.kafka_import", f"{kafka}", f"{tmp_path / 'data'}"]

    done, again = (subprocess.run(command, capture_output=True, check=False) for _ in range(2))
    without = subprocess.run(command[:3], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"2 topics with 3 partitions, ")
    assert again.returncode == 1
    assert b"already contains topics" in again.stderr
    assert without.returncode == 2
