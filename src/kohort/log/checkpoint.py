"""The small text files beside the segments, in Kafka's formats.

A checkpoint is a version, the number of its lines, and the lines: a topic, a partition, an offset.
"""

import base64
import json
from collections.abc import Mapping, Set
from typing import Final

from kohort.log import names
from kohort.log.disk import Disk, read_file
from kohort.log.limits import LEADER_EPOCH
from kohort.types import Offset, Partition, Topic, Uuid

_VERSION: Final = 0


class OffsetCheckpoint:
    """One offset for each partition that has one, in one file for them all."""

    def __init__(self, disk: Disk, path: str, *, is_kept: bool) -> None:
        self._disk = disk
        self._path = path
        self._offsets = _decode(read_file(disk, path)) if is_kept else {}
        self._is_changed = False

    def find(self, topic: Topic, partition: Partition) -> Offset | None:
        return self._offsets.get((topic, partition))

    def put(self, topic: Topic, partition: Partition, offset: Offset) -> None:
        """In memory; flush() keeps it."""
        if self._offsets.get((topic, partition)) != offset:
            self._offsets[topic, partition] = offset
            self._is_changed = True

    def forget(self, topic: Topic, partition: Partition) -> None:
        if self._offsets.pop((topic, partition), None) is not None:
            self._is_changed = True

    def keep_only(self, topics: Set[Topic]) -> None:
        for topic, partition in [key for key in self._offsets if key[0] not in topics]:
            self.forget(topic, partition)

    def flush(self) -> None:
        if self._is_changed:
            self._disk.write_atomically(self._path, _encode(self._offsets))
            self._is_changed = False


class Checkpoints:
    """What is known of each partition beside its own directory."""

    def __init__(self, disk: Disk, listed: Mapping[str, int]) -> None:
        def load(name: str) -> OffsetCheckpoint:
            return OffsetCheckpoint(disk, name, is_kept=name in listed)

        self.start_offsets = load(names.START_OFFSETS)
        """Before it, records are deleted."""
        self.recovery_points = load(names.RECOVERY_POINTS)
        """Before it, everything was synced."""
        self.cleaned_offsets = load(names.CLEANED_OFFSETS)
        """Before it, everything was compacted."""

    def forget(self, topic: Topic, partition: Partition) -> None:
        for checkpoint in self._all:
            checkpoint.forget(topic, partition)

    def keep_only(self, topics: Set[Topic]) -> None:
        """Forgets all other topics, and keeps that."""
        for checkpoint in self._all:
            checkpoint.keep_only(topics)
            checkpoint.flush()

    def flush(self) -> None:
        for checkpoint in self._all:
            checkpoint.flush()

    @property
    def _all(self) -> tuple[OffsetCheckpoint, ...]:
        return self.start_offsets, self.recovery_points, self.cleaned_offsets


def _encode(offsets: Mapping[tuple[Topic, Partition], Offset]) -> bytes:
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def _decode(data: bytes) -> dict[tuple[Topic, Partition], Offset]:
    """Nothing at all if the file is not whole: every checkpoint can be done without."""
    try:
        version, count, *lines = data.decode().splitlines()
        if int(version) != _VERSION or int(count) != len(lines):
            return {}
        rows = [line.split() for line in lines]
        return {
            (Topic(topic), Partition(int(partition))): Offset(int(offset))
            for topic, partition, offset in rows
        }
    except ValueError:
        return {}


# Beside one partition


def encode_leader_epochs() -> bytes:
    return f"{_VERSION}\n1\n{LEADER_EPOCH} 0\n".encode()


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def find_topic_id(data: bytes) -> Uuid | None:
    """The id in a partition.metadata file, if it is one."""
    for line in data.decode(errors="replace").splitlines():
        key, _, text = line.partition(":")
        if key == "topic_id":
            return decode_uuid(text.strip())
    return None


def encode_uuid(topic_id: Uuid) -> str:
    """As Kafka writes one: base64 for addresses, without the padding."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def decode_uuid(text: str) -> Uuid | None:
    try:
        data = base64.urlsafe_b64decode(text + "==")
    except ValueError:
        return None
    return Uuid(data) if len(data) == 16 else None


# Beside them all


def encode_clean_shutdown() -> bytes:
    """Kafka's own words; a node alone has no epoch."""
    return json.dumps({"version": 0, "brokerEpoch": -1}).encode()
