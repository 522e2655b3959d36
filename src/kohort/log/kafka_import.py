"""Copies the partitions of a stopped Apache Kafka broker into a new Kohort data directory.

    python -m kohort.log.kafka_import KAFKA_LOG_DIR DATA

Kafka's directory is only read. Segments are copied batch by batch. Only the leader epoch of each
batch is changed to 0, the leader epoch of every Kohort partition: a client that reads a higher
epoch considers its metadata outdated. Indexes and snapshots are not copied; the first start
rebuilds them and validates every batch.

Topics keep their ids and offsets, groups keep their committed offsets. Kafka stores topic settings
elsewhere, so they are not copied.
"""

import re
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kohort.events.internal_topics import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kohort.log import file_names
from kohort.log.catalog_file import CatalogContent, CatalogTopic, lock_directory
from kohort.log.catalog_journal import write_new_catalog
from kohort.log.checkpoint import encode_leader_epochs, find_topic_id
from kohort.log.disk import Disk, write_file
from kohort.log.errors import DataDirectoryError, LogError
from kohort.log.limits import LEADER_EPOCH, READ_BYTES
from kohort.log.os_disk import OsDisk
from kohort.types import ProducerId, Topic, Uuid, value
from kohort.wire.batch import split
from kohort.wire.batch_header import LENGTH_END
from kohort.wire.errors import MalformedMessage

_OFFSETS_SETTINGS: Final = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
"""The settings of __consumer_offsets, the same in Kafka and Kohort."""

_SKIPPED_TOPICS: Final = frozenset({CLUSTER_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Internal topics of Kafka for features that Kohort does not have; they are not copied."""

_EPOCH: Final = struct.Struct(">i")


@value
class KafkaImportResult:
    topics: Mapping[Topic, int]
    """The number of partitions by topic."""
    bytes_copied: int


def import_kafka_directory(kafka: Path, where: Path) -> KafkaImportResult:
    """Copy every partition of a stopped broker.

    Raises DataDirectoryError if this is not possible. The new directory then has no catalog and
    must be deleted.
    """
    _check_stopped(kafka)
    topics = _find_topics(kafka)
    disk = OsDisk(where)
    lock = lock_directory(disk)
    try:
        if file_names.CATALOG in disk.list(""):
            raise DataDirectoryError(f"{where} already contains topics; use a new directory")
        copier = _Copier(disk)
        for topic in topics.values():
            for number in range(topic.partition_count):
                directory = file_names.partition_directory(topic.name, number)
                copier.copy_partition(kafka / directory, directory)
        starts = kafka / file_names.START_OFFSETS
        if starts.exists():
            write_file(disk, file_names.START_OFFSETS, starts.read_bytes())
        content = CatalogContent(
            cluster_id=_cluster_id(kafka),
            next_producer_id=ProducerId(copier.producer_id_max + 1),
            topics=topics,
        )
        # Last, because a directory without a catalog is rejected.
        write_new_catalog(disk, content)
    finally:
        lock.release()
    counts = {topic.name: topic.partition_count for topic in topics.values()}
    return KafkaImportResult(topics=counts, bytes_copied=copier.bytes_copied)


def _check_stopped(kafka: Path) -> None:
    if not (kafka / file_names.KAFKA_PROPERTIES).exists():
        raise DataDirectoryError(
            f"{kafka} is not a log directory of Apache Kafka: it has no"
            f" {file_names.KAFKA_PROPERTIES}"
        )
    if not (kafka / file_names.CLEAN_SHUTDOWN).exists():
        raise DataDirectoryError(
            f"{kafka} is in use, or the broker was not shut down cleanly: it has no"
            f" {file_names.CLEAN_SHUTDOWN}"
        )


def _find_topics(kafka: Path) -> dict[Topic, CatalogTopic]:
    found: dict[Topic, list[int]] = {}
    for directory in kafka.iterdir():
        partition = (
            file_names.parse_partition_directory(directory.name) if directory.is_dir() else None
        )
        if partition is not None and partition[0] not in _SKIPPED_TOPICS:
            found.setdefault(partition[0], []).append(partition[1])
    return {name: _topic(kafka, name, sorted(found[name])) for name in sorted(found)}


def _topic(kafka: Path, name: Topic, numbers: Sequence[int]) -> CatalogTopic:
    missing = set(range(numbers[-1] + 1)) - set(numbers)
    if missing:
        raise DataDirectoryError(
            f"{kafka} has no partition {min(missing)} of topic {name}; all partitions must be in"
            " this directory"
        )
    ids = {_topic_id(kafka / file_names.partition_directory(name, number)) for number in numbers}
    if len(ids) > 1:
        raise DataDirectoryError(f"{kafka} contains partitions of two topics with the name {name}")
    return CatalogTopic(
        name=name,
        topic_id=ids.pop(),
        partition_count=len(numbers),
        settings=_OFFSETS_SETTINGS if name == CONSUMER_OFFSETS else {},
    )


def _topic_id(directory: Path) -> Uuid:
    metadata = directory / file_names.PARTITION_METADATA
    topic_id = find_topic_id(metadata.read_bytes()) if metadata.exists() else None
    if topic_id is None:
        raise DataDirectoryError(f"{directory} has no topic id; its Kafka version is too old")
    return topic_id


def _cluster_id(kafka: Path) -> str:
    properties = (kafka / file_names.KAFKA_PROPERTIES).read_text("utf-8")
    found = re.search(r"^cluster\.id=(.+)$", properties, re.MULTILINE)
    if found is None:
        raise DataDirectoryError(f"{kafka}/{file_names.KAFKA_PROPERTIES} has no cluster.id")
    return found[1].strip()


class _Copier:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.bytes_copied = 0
        self.producer_id_max = -1
        """The highest producer id in the copied batches. New producers get higher ones."""

    def copy_partition(self, source: Path, directory: str) -> None:
        self._disk.make_directory(directory)
        metadata = (source / file_names.PARTITION_METADATA).read_bytes()
        write_file(self._disk, f"{directory}/{file_names.PARTITION_METADATA}", metadata)
        write_file(self._disk, f"{directory}/{file_names.LEADER_EPOCHS}", encode_leader_epochs())
        for path in sorted(source.iterdir()):
            segment = file_names.parse_segment_file(path.name)
            if segment is not None and segment.kind == file_names.LOG and not segment.stage:
                self._copy_segment(path, f"{directory}/{path.name}")

    def _copy_segment(self, source: Path, target: str) -> None:
        file = self._disk.create(target)
        try:
            for batches in self._read(source):
                file.append(batches)
                self.bytes_copied += len(batches)
        except MalformedMessage as error:
            raise DataDirectoryError(f"{source} is corrupt: {error}") from error
        finally:
            file.close()

    def _read(self, source: Path) -> Iterator[bytearray]:
        """Chunks of whole batches with the new leader epoch."""
        with source.open("rb") as file:
            incomplete = bytearray()
            while data := file.read(READ_BYTES):
                batches = incomplete + data
                end = 0
                for position, header in split(batches, truncated_ok=True):
                    _EPOCH.pack_into(batches, position + LENGTH_END, LEADER_EPOCH)
                    self.producer_id_max = max(self.producer_id_max, header.producer_id)
                    end = position + header.size_in_bytes
                incomplete = batches[end:]
                yield batches[:end]
        if incomplete:
            raise DataDirectoryError(f"{source} ends with a truncated batch")


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write("usage: python -m kohort.log.kafka_import KAFKA_LOG_DIR DATA\n")
        return 2
    try:
        result = import_kafka_directory(Path(sys.argv[1]), Path(sys.argv[2]))
    except (LogError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    partitions = sum(result.topics.values())
    sys.stdout.write(
        f"{len(result.topics)} topics with {partitions} partitions, {result.bytes_copied} bytes\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
