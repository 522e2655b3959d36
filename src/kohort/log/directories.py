"""The partitions' directories: made, found, put aside, removed. What is inside is not looked at,
beyond whose it is and whether it holds anything."""

from collections.abc import Iterator

from kohort.log.catalog_file import Content, KeptTopic
from kohort.log.checkpoint import (
    encode_leader_epochs,
    encode_partition_metadata,
    find_topic_id,
)
from kohort.log.disk import DIRECTORY, Disk, read_file, write_file
from kohort.log.errors import DirectoryRefused
from kohort.log.names import (
    DELETE_DIRECTORY,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    STRAY_DIRECTORY,
    doomed_directory,
    find_partition,
    partition_directory,
)
from kohort.log.swap import Recovered
from kohort.types import ZERO_UUID, Partition, Uuid


class Directories:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def prepare(self, topic: KeptTopic, partition: Partition) -> str:
        """The directory of a partition with the files that say whose it is; made if missing."""
        directory = partition_directory(topic.name, partition)
        self._disk.make_directory(directory)
        listed = self._disk.list(directory)
        kept_id = self._find_topic_id(directory)
        if kept_id is None:
            # Not synced: the catalog knows, should it be lost.
            metadata = encode_partition_metadata(topic.topic_id)
            write_file(self._disk, f"{directory}/{PARTITION_METADATA}", metadata)
        elif kept_id != topic.topic_id:
            raise DirectoryRefused(
                f"{self._disk.name}/{directory} belongs to another topic of the same name:"
                f" {PARTITION_METADATA} has another id than the catalog"
            )
        if LEADER_EPOCHS not in listed:
            write_file(self._disk, f"{directory}/{LEADER_EPOCHS}", encode_leader_epochs())
        return directory

    def remove(self, topic: KeptTopic, first: int = 0) -> None:
        """A topic's directories from a partition on. Renamed first, so that none is half there."""
        listed = self._disk.list("")
        doomed = []
        for number in range(first, topic.partition_count):
            directory = partition_directory(topic.name, number)
            if directory in listed and self._find_topic_id(directory) in (topic.topic_id, None):
                doomed.append(self._doom(directory, topic.topic_id, DELETE_DIRECTORY))
        self._disk.sync_directory("")
        for directory in doomed:
            self._remove_all(directory)

    def tidy(self, content: Content) -> Iterator[Recovered]:
        """Removes what deletions have left; puts aside what nobody knows."""
        for topic in content.deleting:
            self.remove(topic)
        for directory, size in self._disk.list("").items():
            if size != DIRECTORY:
                continue
            if directory.endswith(DELETE_DIRECTORY):
                self._remove_all(directory)
                continue
            found = find_partition(directory)
            if found is None:
                continue
            owner = content.topics.get(found[0])
            if owner is None or found[1] >= owner.partition_count:
                yield from self._put_aside(directory)

    def _put_aside(self, directory: str) -> Iterator[Recovered]:
        """The catalog may be older than what it does not know, so no record is thrown away."""
        sizes = [size for name, size in self._disk.list(directory).items() if name.endswith(LOG)]
        if not any(sizes):
            self._remove_all(directory)
            return
        topic_id = self._find_topic_id(directory) or ZERO_UUID
        stray = self._doom(directory, topic_id, STRAY_DIRECTORY)
        reason = f"the catalog does not know it; it was put aside as {stray}"
        yield Recovered(path=directory, position=0, bytes_cut=0, reason=reason)

    def _doom(self, directory: str, topic_id: Uuid, ending: str) -> str:
        found = find_partition(directory)
        assert found is not None
        doomed = doomed_directory(*found, topic_id, ending)
        self._disk.rename(directory, doomed)
        return doomed

    def _remove_all(self, directory: str) -> None:
        for name in self._disk.list(directory):
            self._disk.remove(f"{directory}/{name}")
        self._disk.remove(directory)

    def _find_topic_id(self, directory: str) -> Uuid | None:
        if PARTITION_METADATA not in self._disk.list(directory):
            return None
        return find_topic_id(read_file(self._disk, f"{directory}/{PARTITION_METADATA}"))
