"""Moving in from Apache Kafka: what is copied, what is left behind, and what is refused."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.log.adoption import adopt
from kohort.log.catalog import Catalog
from kohort.log.catalog_file import KeptTopic
from kohort.log.checkpoint import encode_uuid
from kohort.log.errors import DirectoryRefused
from kohort.types import Offset, Topic, Uuid
from kohort.wire.batch import split
from tests.log.logs import NOW, new_batch, numbered_batch

ORDERS = Topic("orders")
OFFSETS = Topic("__consumer_offsets")
IDS = {ORDERS: Uuid(b"o" * 16), OFFSETS: Uuid(b"c" * 16)}
EPOCH_AT = 12
LATER_EPOCH = 7


def batch_at(offset: int, epoch: int, data: bytes) -> bytes:
    """A batch in its place in the log, as the leader of that epoch put it there."""
    return struct.pack(">q", offset) + data[8:EPOCH_AT] + struct.pack(">i", epoch) + data[16:]


def put_partition(kafka: Path, topic: Topic, number: int, *batches: bytes) -> Path:
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
    """The directory of a Kafka that was stopped, with two topics in it."""
    kafka = tmp_path / "kafka"
    kafka.mkdir()
    (kafka / "meta.properties").write_text("version=1\ncluster.id=some-cluster\n", "utf-8")
    (kafka / ".kafka_cleanshutdown").write_text("{}", "utf-8")
    (kafka / "log-start-offset-checkpoint").write_text("0\n1\norders 1 1\n", "utf-8")
    first = batch_at(0, 0, numbered_batch(0, records=2))
    second = batch_at(2, LATER_EPOCH, numbered_batch(1))
    put_partition(kafka, ORDERS, 0)
    put_partition(kafka, ORDERS, 1, first, second)
    put_partition(kafka, OFFSETS, 0)
    return kafka


def opened(where: Path) -> Catalog:
    catalog, _ = Catalog.open(where, NOW)
    return catalog


def test_topics_keep_their_ids_and_partitions(kafka: Path, tmp_path: Path) -> None:
    adopted = adopt(kafka, tmp_path / "data")

    catalog = opened(tmp_path / "data")
    assert adopted.topics == {ORDERS: 2, OFFSETS: 1}
    assert catalog.cluster_id == "some-cluster"
    found = {topic.name: topic for topic in catalog.topics}
    assert found[ORDERS] == KeptTopic(
        name=ORDERS, topic_id=IDS[ORDERS], partition_count=2, settings={}
    )
    assert found[OFFSETS].settings["cleanup.policy"] == "compact"


def test_batches_change_in_nothing_but_the_leader_epoch(kafka: Path, tmp_path: Path) -> None:
    before = (kafka / "orders-1" / "00000000000000000000.log").read_bytes()

    adopt(kafka, tmp_path / "data")

    after = (tmp_path / "data" / "orders-1" / "00000000000000000000.log").read_bytes()
    positions = [position for position, _ in split(before)]
    assert [header.partition_leader_epoch for _, header in split(before)] == [0, LATER_EPOCH]
    assert [header.partition_leader_epoch for _, header in split(after)] == [0, 0]
    at_epochs = {at + EPOCH_AT + byte for at in positions for byte in range(4)}
    changed = {at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
    assert changed <= at_epochs


def test_logs_begin_and_end_where_they_did(kafka: Path, tmp_path: Path) -> None:
    adopt(kafka, tmp_path / "data")

    log = opened(tmp_path / "data").partition(ORDERS, 1)
    assert log is not None
    assert (log.start_offset, log.end_offset) == (Offset(1), Offset(3))


def test_no_producer_gets_the_id_of_an_earlier_one(kafka: Path, tmp_path: Path) -> None:
    batch = new_batch(producer_id=4711, producer_epoch=0, base_sequence=0)
    (kafka / "orders-0" / "00000000000000000000.log").write_bytes(batch_at(0, 0, batch))

    adopt(kafka, tmp_path / "data")

    assert opened(tmp_path / "data").reserve_producer_ids(1) == 4712


def test_what_kafka_remembers_of_itself_is_left_behind(kafka: Path, tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "__transaction_state-0", "gone-0.abc-delete"):
        (kafka / name).mkdir()

    adopted = adopt(kafka, tmp_path / "data")

    assert adopted.topics.keys() == {ORDERS, OFFSETS}


def test_a_large_batch_is_copied_whole(kafka: Path, tmp_path: Path) -> None:
    large = batch_at(0, LATER_EPOCH, numbered_batch(0, records=3, size=1 << 20))
    small = batch_at(3, LATER_EPOCH, numbered_batch(1))
    (kafka / "orders-0" / "00000000000000000000.log").write_bytes(large + small)

    adopt(kafka, tmp_path / "data")

    log = opened(tmp_path / "data").partition(ORDERS, 0)
    assert log is not None
    assert (log.end_offset, log.size_bytes) == (Offset(4), len(large + small))


def test_a_directory_that_is_not_kafkas_is_refused(kafka: Path, tmp_path: Path) -> None:
    (kafka / "meta.properties").unlink()

    with pytest.raises(DirectoryRefused, match=r"meta\.properties"):
        adopt(kafka, tmp_path / "data")


def test_a_kafka_that_runs_is_refused(kafka: Path, tmp_path: Path) -> None:
    (kafka / ".kafka_cleanshutdown").unlink()

    with pytest.raises(DirectoryRefused, match="in use"):
        adopt(kafka, tmp_path / "data")


def test_a_partition_that_is_elsewhere_is_missed(kafka: Path, tmp_path: Path) -> None:
    put_partition(kafka, ORDERS, 3)

    with pytest.raises(DirectoryRefused, match="no partition 2 of topic orders"):
        adopt(kafka, tmp_path / "data")


def test_two_topics_of_one_name_are_refused(kafka: Path, tmp_path: Path) -> None:
    other = f"version: 0\ntopic_id: {encode_uuid(Uuid(b'x' * 16))}\n"
    (kafka / "orders-1" / "partition.metadata").write_text(other, "utf-8")

    with pytest.raises(DirectoryRefused, match="two topics with the name orders"):
        adopt(kafka, tmp_path / "data")


def test_a_topic_without_an_id_is_refused(kafka: Path, tmp_path: Path) -> None:
    (kafka / "orders-1" / "partition.metadata").unlink()

    with pytest.raises(DirectoryRefused, match="does not tell the id"):
        adopt(kafka, tmp_path / "data")


@pytest.mark.parametrize("damage", [b"\0" * 70, b"\xff" * 5])
def test_a_damaged_segment_is_refused(kafka: Path, tmp_path: Path, damage: bytes) -> None:
    path = kafka / "orders-1" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes() + damage)

    with pytest.raises(DirectoryRefused, match=r"00000000000000000000\.log"):
        adopt(kafka, tmp_path / "data")
    assert not (tmp_path / "data" / "kohort-catalog.json").exists()


def test_nothing_is_moved_in_on_top_of_other_topics(kafka: Path, tmp_path: Path) -> None:
    opened(tmp_path / "data").close(NOW)

    with pytest.raises(DirectoryRefused, match="holds topics already"):
        adopt(kafka, tmp_path / "data")


def test_the_command_says_what_it_did_or_why_not(kafka: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "kohort.log.adoption", f"{kafka}", f"{tmp_path / 'data'}"]

    done, again = (subprocess.run(words, capture_output=True, check=False) for _ in range(2))
    without = subprocess.run(words[:3], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"2 topics with 3 partitions, ")
    assert again.returncode == 1
    assert b"holds topics already" in again.stderr
    assert without.returncode == 2
