"""Checkpoint and metadata files, in Kafka's formats.

An offset checkpoint has a version, the number of entries, and one line per entry: topic, partition,
offset. Its last entry has the CRC-32C of the others in place of an offset, under a name that no
topic has. Kafka ignores it. Files without it are accepted.
"""

import base64
import json
from collections.abc import Callable, Mapping, Set
from typing import Final

from kohort.log import file_names
from kohort.log.disk import Disk, read_file
from kohort.log.limits import LEADER_EPOCH
from kohort.types import Offset, Partition, Topic, Uuid
from kohort.wire.batch_header import checksum

_VERSION: Final = 0

_CHECKSUM: Final = "__kohort_checksum"


class OffsetCheckpoint:
    """A checkpoint file with an offset per partition."""

    def __init__(
        self, disk: Disk, path: str, sync_names: Callable[[], None], *, exists: bool
    ) -> None:
        self._disk = disk
        self._sync_names = sync_names
        self.path = path
        decoded = _decode(read_file(disk, path)) if exists else {}
        self._offsets = decoded or {}
        self._is_changed = False
        self.is_damaged = decoded is None

    def find(self, topic: Topic, partition: Partition) -> Offset | None:
        return self._offsets.get((topic, partition))

    def put(self, topic: Topic, partition: Partition, offset: Offset) -> None:
        """In memory; `flush` writes the file."""
        if self._offsets.get((topic, partition)) != offset:
            self._offsets[topic, partition] = offset
            self._is_changed = True

    def discard(self, topic: Topic, partition: Partition) -> None:
        if self._offsets.pop((topic, partition), None) is not None:
            self._is_changed = True

    def keep_only(self, topics: Set[Topic]) -> None:
        for topic, partition in [key for key in self._offsets if key[0] not in topics]:
            self.discard(topic, partition)

    def flush(self) -> None:
        if self._is_changed:
            self._sync_names()
            self._disk.write_atomically(self.path, _encode(self._offsets))
            self._is_changed = False


class Checkpoints:
    """The checkpoint files of a data directory."""

    def __init__(
        self, disk: Disk, listed: Mapping[str, int], sync_names: Callable[[], None]
    ) -> None:
        """`sync_names` makes the partition directories durable; called before a file is written."""

        def load(name: str) -> OffsetCheckpoint:
            return OffsetCheckpoint(disk, name, sync_names, exists=name in listed)

        self.start_offsets = load(file_names.START_OFFSETS)
        """Log start offsets: earlier records are deleted."""
        self.recovery_points = load(file_names.RECOVERY_POINTS)
        """Recovery points: earlier records are synced."""
        self.cleaned_offsets = load(file_names.CLEANED_OFFSETS)
        """Earlier records are compacted."""

    def discard(self, topic: Topic, partition: Partition) -> None:
        for checkpoint in self._all:
            checkpoint.discard(topic, partition)

    def keep_only(self, topics: Set[Topic]) -> None:
        """Remove the entries of all other topics, and flush."""
        for checkpoint in self._all:
            checkpoint.keep_only(topics)
            checkpoint.flush()

    def flush(self) -> None:
        for checkpoint in self._all:
            checkpoint.flush()

    def find_damaged(self) -> tuple[str, ...]:
        """The names of files that could not be read. Their entries are missing."""
        return tuple(each.path for each in self._all if each.is_damaged)

    @property
    def _all(self) -> tuple[OffsetCheckpoint, ...]:
        return self.start_offsets, self.recovery_points, self.cleaned_offsets


def _encode(offsets: Mapping[tuple[Topic, Partition], Offset]) -> bytes:
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    if lines:
        lines.append(f"{_CHECKSUM} 0 {checksum(''.join(lines).encode())}\n")
    return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def _decode(data: bytes) -> dict[tuple[Topic, Partition], Offset] | None:
    """None if the file is invalid: a log can be opened without any checkpoint."""
    try:
        version, count, *lines = data.decode().splitlines()
        if int(version) != _VERSION or int(count) != len(lines):
            return None
        if lines and lines[-1].startswith(_CHECKSUM):
            stored = int(lines.pop().split()[2])
            if stored != checksum("".join(f"{line}\n" for line in lines).encode()):
                return None
        rows = [line.split() for line in lines]
        return {
            (Topic(topic), Partition(int(partition))): Offset(int(offset))
            for topic, partition, offset in rows
        }
    except (ValueError, IndexError):
        return None


# Files of a partition directory


def encode_leader_epochs() -> bytes:
    return f"{_VERSION}\n1\n{LEADER_EPOCH} 0\n".encode()


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def find_topic_id(data: bytes) -> Uuid | None:
    """The topic id in a partition.metadata file, or None if the file is invalid."""
    for line in data.decode(errors="replace").splitlines():
        key, _, text = line.partition(":")
        if key == "topic_id":
            return decode_uuid(text.strip())
    return None


def encode_uuid(topic_id: Uuid) -> str:
    """As Kafka writes ids: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def decode_uuid(text: str) -> Uuid | None:
    try:
        data = base64.urlsafe_b64decode(text + "==")
    except ValueError:
        return None
    return Uuid(data) if len(data) == 16 else None


# Files of the data directory


def encode_clean_shutdown() -> bytes:
    """Kafka's format. A node without a cluster has no broker epoch."""
    return json.dumps({"version": 0, "brokerEpoch": -1}).encode()
