"""Creates and removes partition directories, and renames stray ones.

Of their content only the topic id is read, and whether there are records. Deleted topics are
removed in steps: their directories are renamed first, so that no incomplete partition is left.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from kohort.log.catalog_file import CatalogContent, CatalogTopic
from kohort.log.checkpoint import (
    encode_leader_epochs,
    encode_partition_metadata,
    find_topic_id,
)
from kohort.log.disk import DIRECTORY, Disk, read_file, write_file
from kohort.log.errors import DataDirectoryError, StorageError
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
from kohort.log.repair import Repair
from kohort.types import ZERO_UUID, Partition, Topic, Uuid

_RENAMED_PER_STEP: Final = 64


class PartitionDirectories:
    def __init__(self, disk: Disk, listed: Mapping[str, int]) -> None:
        """`listed` is the content of the data directory."""
        self._disk = disk
        self._existing = {
            name
            for name, size in listed.items()
            if size == DIRECTORY and parse_partition_directory(name) is not None
        }
        self._to_rename: dict[Uuid, deque[str]] = {}
        """The directories of deleted topics that still have their name, by topic id."""
        self._to_remove = deque(
            name
            for name, size in listed.items()
            if size == DIRECTORY and name.endswith(DELETE_DIRECTORY)
        )
        self._has_unsynced_names = False

    # Creation

    def has(self, topic: Topic, partition: Partition) -> bool:
        return partition_directory(topic, partition) in self._existing

    def prepare(self, topic: CatalogTopic, partition: Partition) -> Mapping[str, int]:
        """Create the directory of a partition with its metadata files, if missing. Returns its
        content."""
        directory = partition_directory(topic.name, partition)
        if directory not in self._existing:
            self._disk.make_directory(directory)
            self._existing.add(directory)
            self._has_unsynced_names = True
        listed = self._disk.list(directory)
        stored_id = self._find_topic_id(directory, listed)
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
        return listed

    def sync_names(self) -> None:
        """Make the names of new directories durable, before a checkpoint says what they contain."""
        if self._has_unsynced_names:
            self._disk.sync_directory("")
            self._has_unsynced_names = False

    # Removal

    def delete(self, topic: CatalogTopic) -> None:
        """Rename and remove the directories of a deleted topic in later steps."""
        names = (partition_directory(topic.name, each) for each in range(topic.partition_count))
        self._to_rename[topic.topic_id] = deque(name for name in names if name in self._existing)

    def rename_all(self, topic_id: Uuid) -> Iterator[None]:
        """Rename all directories of a deleted topic, in steps. `remove_some` may be called between
        the steps."""
        names = self._to_rename.get(topic_id)
        if names is None:
            return
        is_any = bool(names)
        while names:
            for _ in range(min(_RENAMED_PER_STEP, len(names))):
                self._rename_next(topic_id)
            yield
        if is_any:
            self._disk.sync_directory("")

    def forget(self, topic_id: Uuid) -> None:
        """The catalog no longer names the deleted topic."""
        self._to_rename.pop(topic_id, None)

    def remove_some(self, count: int | None) -> list[Uuid]:
        """Rename or remove up to `count` directories. Returns the deleted topics whose directories
        are all renamed; the caller stores that, and calls `forget`."""
        left = count
        renamed: list[Uuid] = []
        has_renamed = False
        for topic_id, names in self._to_rename.items():
            while names and (left is None or left > 0):
                self._rename_next(topic_id)
                has_renamed = True
                left = None if left is None else left - 1
            if names:
                break
            renamed.append(topic_id)
        if has_renamed:
            self._disk.sync_directory("")
        while self._to_remove and (left is None or left > 0):
            self._remove_next()
            left = None if left is None else left - 1
        return renamed

    @property
    def has_deleted(self) -> bool:
        """Whether there is something left for `remove_some`."""
        return bool(self._to_rename or self._to_remove)

    def _rename_next(self, topic_id: Uuid) -> None:
        names = self._to_rename[topic_id]
        try:
            self._to_remove.append(self._rename(names[0], topic_id, DELETE_DIRECTORY))
        except StorageError:
            if self._exists(names[0]):
                raise
            self._existing.discard(names[0])
        names.popleft()

    def _remove_next(self) -> None:
        try:
            self._remove_all(self._to_remove[0])
        except StorageError:
            if self._exists(self._to_remove[0]):
                raise
        self._to_remove.popleft()

    def _exists(self, directory: str) -> bool:
        """False if another program has removed the directory."""
        return directory in self._disk.list("")

    # Start

    def clean_up(self, content: CatalogContent) -> Iterator[Repair]:
        """Find what is left of deleted topics, and rename directories that are not in the
        catalog."""
        for topic in content.deleting.values():
            self.delete(topic)
            names = self._to_rename[topic.topic_id]
            owners = (topic.topic_id,) if topic.name in content.topics else (topic.topic_id, None)
            self._to_rename[topic.topic_id] = deque(
                name for name in names if self._read_topic_id(name) in owners
            )
            for _ in self.rename_all(topic.topic_id):
                pass
        for directory in sorted(self._existing):
            found = parse_partition_directory(directory)
            assert found is not None
            owner = content.topics.get(found[0])
            if owner is None or found[1] >= owner.partition_count:
                yield from self._mark_stray(directory)

    def _mark_stray(self, directory: str) -> Iterator[Repair]:
        """Rename a directory with records, remove one without. The catalog may be older than the
        directory, so no record is deleted."""
        sizes = [size for name, size in self._disk.list(directory).items() if name.endswith(LOG)]
        if not any(sizes):
            self._existing.discard(directory)
            self._remove_all(directory)
            return
        topic_id = self._read_topic_id(directory) or ZERO_UUID
        stray = self._rename(directory, topic_id, STRAY_DIRECTORY)
        reason = f"not in the catalog; renamed to {stray}"
        yield Repair(path=directory, reason=reason)

    def _rename(self, directory: str, topic_id: Uuid, suffix: str) -> str:
        found = parse_partition_directory(directory)
        assert found is not None
        renamed = suffixed_directory(*found, topic_id, suffix)
        self._disk.rename(directory, renamed)
        self._existing.discard(directory)
        return renamed

    def _remove_all(self, directory: str) -> None:
        for name in self._disk.list(directory):
            self._disk.remove(f"{directory}/{name}")
        self._disk.remove(directory)

    def _read_topic_id(self, directory: str) -> Uuid | None:
        return self._find_topic_id(directory, self._disk.list(directory))

    def _find_topic_id(self, directory: str, listed: Mapping[str, int]) -> Uuid | None:
        if PARTITION_METADATA not in listed:
            return None
        return find_topic_id(read_file(self._disk, f"{directory}/{PARTITION_METADATA}"))
