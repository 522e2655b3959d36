"""Moving in from Apache Kafka: the partitions of a stopped broker, copied into a directory of ours.

    python -m kohort.log.adoption KAFKA_LOG_DIR DATA

Kafka's directory is only read. Segments are copied batch by batch, and of a batch only the leader
epoch changes: here every partition has one leader, its first, and clients take a record from a
later one for a sign that they know too little. Indexes and snapshots are left behind, and made
again by the first start, which checks every batch.

Topics keep their ids and offsets, groups what they committed. The settings of topics are not in
this directory of Kafka's, and so they are not moved.
"""

import re
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kohort.log import names
from kohort.log.catalog_file import Content, KeptTopic, claim_directory, write_content
from kohort.log.checkpoint import encode_leader_epochs, find_topic_id
from kohort.log.disk import Disk, write_file
from kohort.log.errors import DirectoryRefused, LogError
from kohort.log.limits import LEADER_EPOCH, READ_BYTES
from kohort.log.osdisk import OsDisk
from kohort.types import ProducerId, Topic, Uuid, value
from kohort.wire.batch import split
from kohort.wire.batch_header import LENGTH_END
from kohort.wire.errors import MalformedMessage

_OFFSETS: Final = Topic("__consumer_offsets")
_OFFSETS_SETTINGS: Final = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
"""Kafka's own for this topic, and ours."""

_LEFT_BEHIND: Final = frozenset(
    {"__cluster_metadata", "__transaction_state", "__share_group_state"}
)
"""What Kafka remembers of itself, for parts of it that are not here."""

_EPOCH: Final = struct.Struct(">i")


@value
class Adopted:
    """What was moved in."""

    topics: Mapping[Topic, int]
    """How many partitions each has."""
    bytes_copied: int


def adopt(kafka: Path, where: Path) -> Adopted:
    """Copies every partition of a Kafka that has been stopped. Raises DirectoryRefused if it
    cannot be: then there is no catalog, and the directory is to be thrown away."""
    _check_stopped(kafka)
    topics = _find_topics(kafka)
    disk = OsDisk(where)
    lock = claim_directory(disk)
    try:
        if names.CATALOG in disk.list(""):
            raise DirectoryRefused(f"{where} holds topics already; move into a new directory")
        copier = _Copier(disk)
        for topic in topics.values():
            for number in range(topic.partition_count):
                directory = names.partition_directory(topic.name, number)
                copier.copy_partition(kafka / directory, directory)
        starts = kafka / names.START_OFFSETS
        if starts.exists():
            write_file(disk, names.START_OFFSETS, starts.read_bytes())
        content = Content(
            cluster_id=_cluster_id(kafka),
            next_producer_id=ProducerId(copier.producer_id_max + 1),
            topics=topics,
            deleting=(),
        )
        # Last: without it, what is there is nobody's.
        write_content(disk, content)
    finally:
        lock.release()
    counts = {topic.name: topic.partition_count for topic in topics.values()}
    return Adopted(topics=counts, bytes_copied=copier.bytes_copied)


def _check_stopped(kafka: Path) -> None:
    if not (kafka / names.KAFKA_PROPERTIES).exists():
        raise DirectoryRefused(f"{kafka} is not Apache Kafka's: it has no {names.KAFKA_PROPERTIES}")
    if not (kafka / names.CLEAN_SHUTDOWN).exists():
        raise DirectoryRefused(
            f"{kafka} is in use, or its Kafka was not stopped cleanly: it has no"
            f" {names.CLEAN_SHUTDOWN}"
        )


def _find_topics(kafka: Path) -> dict[Topic, KeptTopic]:
    found: dict[Topic, list[int]] = {}
    for directory in kafka.iterdir():
        partition = names.find_partition(directory.name) if directory.is_dir() else None
        if partition is not None and partition[0] not in _LEFT_BEHIND:
            found.setdefault(partition[0], []).append(partition[1])
    return {name: _topic(kafka, name, sorted(found[name])) for name in sorted(found)}


def _topic(kafka: Path, name: Topic, numbers: Sequence[int]) -> KeptTopic:
    missing = set(range(numbers[-1] + 1)) - set(numbers)
    if missing:
        raise DirectoryRefused(
            f"{kafka} has no partition {min(missing)} of topic {name}; are others elsewhere?"
        )
    ids = {_topic_id(kafka / names.partition_directory(name, number)) for number in numbers}
    if len(ids) > 1:
        raise DirectoryRefused(f"{kafka} holds partitions of two topics with the name {name}")
    return KeptTopic(
        name=name,
        topic_id=ids.pop(),
        partition_count=len(numbers),
        settings=_OFFSETS_SETTINGS if name == _OFFSETS else {},
    )


def _topic_id(directory: Path) -> Uuid:
    metadata = directory / names.PARTITION_METADATA
    topic_id = find_topic_id(metadata.read_bytes()) if metadata.exists() else None
    if topic_id is None:
        raise DirectoryRefused(f"{directory} does not tell the id of its topic; it is too old")
    return topic_id


def _cluster_id(kafka: Path) -> str:
    properties = (kafka / names.KAFKA_PROPERTIES).read_text("utf-8")
    found = re.search(r"^cluster\.id=(.+)$", properties, re.MULTILINE)
    if found is None:
        raise DirectoryRefused(f"{kafka}/{names.KAFKA_PROPERTIES} does not name a cluster")
    return found[1].strip()


class _Copier:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.bytes_copied = 0
        self.producer_id_max = -1
        """No producer here may get the id of one whose batches were copied."""

    def copy_partition(self, source: Path, directory: str) -> None:
        self._disk.make_directory(directory)
        metadata = (source / names.PARTITION_METADATA).read_bytes()
        write_file(self._disk, f"{directory}/{names.PARTITION_METADATA}", metadata)
        write_file(self._disk, f"{directory}/{names.LEADER_EPOCHS}", encode_leader_epochs())
        for path in sorted(source.iterdir()):
            segment = names.find_segment_file(path.name)
            if segment is not None and segment.kind == names.LOG and not segment.stage:
                self._copy_segment(path, f"{directory}/{path.name}")

    def _copy_segment(self, source: Path, target: str) -> None:
        file = self._disk.create(target)
        try:
            for batches in self._read(source):
                file.append(batches)
                self.bytes_copied += len(batches)
        except MalformedMessage as error:
            raise DirectoryRefused(f"{source} is damaged: {error}") from error
        finally:
            file.close()

    def _read(self, source: Path) -> Iterator[bytearray]:
        """Runs of whole batches, each with our leader's epoch."""
        with source.open("rb") as file:
            begun = bytearray()
            while data := file.read(READ_BYTES):
                batches = begun + data
                end = 0
                for position, header in split(batches, truncated_ok=True):
                    _EPOCH.pack_into(batches, position + LENGTH_END, LEADER_EPOCH)
                    self.producer_id_max = max(self.producer_id_max, header.producer_id)
                    end = position + header.size_in_bytes
                begun = batches[end:]
                yield batches[:end]
        if begun:
            raise DirectoryRefused(f"{source} ends within a batch")


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write("python -m kohort.log.adoption KAFKA_LOG_DIR DATA\n")
        return 2
    try:
        adopted = adopt(Path(sys.argv[1]), Path(sys.argv[2]))
    except (LogError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    partitions = sum(adopted.topics.values())
    sys.stdout.write(
        f"{len(adopted.topics)} topics with {partitions} partitions, {adopted.bytes_copied} bytes\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
