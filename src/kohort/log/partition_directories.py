"""Creates and removes partition directories, and renames stray ones.

Of their content only the topic id is read, and whether there are records.
"""

from collections.abc import Iterator

from kohort.log.catalog_file import CatalogContent, CatalogTopic
from kohort.log.checkpoint import (
    encode_leader_epochs,
    encode_partition_metadata,
    find_topic_id,
)
from kohort.log.disk import DIRECTORY, Disk, read_file, write_file
from kohort.log.errors import DataDirectoryError
from kohort.log.file_names import (
    DELETE_DIRECTORY,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    STRAY_DIRECTORY,
    parse_partition_directory,
    partition_directory,
    suffixed_directory,
)
from kohort.log.segment_swap import Repair
from kohort.types import ZERO_UUID, Partition, Uuid


class PartitionDirectories:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def prepare(self, topic: CatalogTopic, partition: Partition) -> str:
        """Create the directory of a partition with its metadata files, if missing."""
        directory = partition_directory(topic.name, partition)
        self._disk.make_directory(directory)
        listed = self._disk.list(directory)
        stored_id = self._find_topic_id(directory)
        if stored_id is None:
            # Not synced: if it is lost, the next start writes it again from the catalog.
            metadata = encode_partition_metadata(topic.topic_id)
            write_file(self._disk, f"{directory}/{PARTITION_METADATA}", metadata)
        elif stored_id != topic.topic_id:
            raise DataDirectoryError(
                f"{self._disk.name}/{directory} belongs to another topic of the same name:"
                f" the topic ids in {PARTITION_METADATA} and in the catalog differ"
            )
        if LEADER_EPOCHS not in listed:
            write_file(self._disk, f"{directory}/{LEADER_EPOCHS}", encode_leader_epochs())
        return directory

    def remove(self, topic: CatalogTopic, first: int = 0) -> None:
        """Remove the directories of partition `first` and later ones. They are renamed first, so
        that a crash leaves no incomplete partition."""
        listed = self._disk.list("")
        renamed = []
        for number in range(first, topic.partition_count):
            directory = partition_directory(topic.name, number)
            if directory in listed and self._find_topic_id(directory) in (topic.topic_id, None):
                renamed.append(self._rename(directory, topic.topic_id, DELETE_DIRECTORY))
        self._disk.sync_directory("")
        for directory in renamed:
            self._remove_all(directory)

    def clean_up(self, content: CatalogContent) -> Iterator[Repair]:
        """Remove the remains of deleted topics, and rename directories that are not in the
        catalog."""
        for topic in content.deleting:
            self.remove(topic)
        for directory, size in self._disk.list("").items():
            if size != DIRECTORY:
                continue
            if directory.endswith(DELETE_DIRECTORY):
                self._remove_all(directory)
                continue
            found = parse_partition_directory(directory)
            if found is None:
                continue
            owner = content.topics.get(found[0])
            if owner is None or found[1] >= owner.partition_count:
                yield from self._mark_stray(directory)

    def _mark_stray(self, directory: str) -> Iterator[Repair]:
        """Rename a directory with records, remove one without. The catalog may be older than the
        directory, so no record is deleted."""
        sizes = [size for name, size in self._disk.list(directory).items() if name.endswith(LOG)]
        if not any(sizes):
            self._remove_all(directory)
            return
        topic_id = self._find_topic_id(directory) or ZERO_UUID
        stray = self._rename(directory, topic_id, STRAY_DIRECTORY)
        reason = f"not in the catalog; renamed to {stray}"
        yield Repair(path=directory, position=0, bytes_truncated=0, reason=reason)

    def _rename(self, directory: str, topic_id: Uuid, suffix: str) -> str:
        found = parse_partition_directory(directory)
        assert found is not None
        renamed = suffixed_directory(*found, topic_id, suffix)
        self._disk.rename(directory, renamed)
        return renamed

    def _remove_all(self, directory: str) -> None:
        for name in self._disk.list(directory):
            self._disk.remove(f"{directory}/{name}")
        self._disk.remove(directory)

    def _find_topic_id(self, directory: str) -> Uuid | None:
        if PARTITION_METADATA not in self._disk.list(directory):
            return None
        return find_topic_id(read_file(self._disk, f"{directory}/{PARTITION_METADATA}"))
