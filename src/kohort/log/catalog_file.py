"""The catalog file and its journal, and the check whether a directory may be used.

The catalog file is a snapshot:

    {"format": 2, "sequence": ..., "cluster_id": ..., "next_producer_id": ...,
     "topics": {name: {"topic_id": ..., "partitions": ..., "settings": {...}}},
     "deleting": [{"name": ..., "topic_id": ..., "partitions": ...}],
     "crc32c": ...}

The journal has the changes since then, one per line: the CRC-32C of the JSON text in hexadecimal, a
space, and the JSON text. Each has the sequence number after that of the change before. A change
that the snapshot includes, because its number is not higher than that of the snapshot, is skipped.

    {"sequence": ..., "topics": {name: ...}, "deleted": [name, ...], "removed": [topic_id, ...],
     "next_producer_id": ...}

Format 1 had no journal: the file was replaced at every change. It is read as it is, and replaced at
the first change. A change that older versions cannot read increments the format number: older
versions then reject the directory before they change it. Unknown fields are dropped. The checksum
of the snapshot is that of its other fields as one line of JSON; a file without it is accepted.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.log.checkpoint import decode_uuid, encode_uuid
from kohort.log.disk import Disk, Lock, read_file
from kohort.log.errors import DataDirectoryError, StorageError
from kohort.log.file_names import CATALOG, CATALOG_JOURNAL, KAFKA_PROPERTIES, LOCK
from kohort.types import ProducerId, Topic, Uuid, value
from kohort.wire.batch_header import checksum

FORMAT: Final = 2
_FORMAT_WITHOUT_JOURNAL: Final = 1

_CHECKSUM: Final = "crc32c"

_ALLOWED_WITHOUT_CATALOG: Final = frozenset(
    {LOCK, CATALOG + ".tmp", CATALOG_JOURNAL, CATALOG_JOURNAL + ".tmp", "lost+found"}
)
"""Names that a directory without a catalog may contain."""

_CRC_DIGITS: Final = 8


@value
class CatalogTopic:
    name: Topic
    topic_id: Uuid
    partition_count: int
    settings: Mapping[str, str]
    """The topic's overrides. All other settings have defaults."""


@value
class CatalogChange:
    """What one call changes. It is stored as a whole or not at all."""

    topics: tuple[CatalogTopic, ...] = ()
    """Created or changed topics."""
    deleted: tuple[Topic, ...] = ()
    removed: tuple[Uuid, ...] = ()
    """Deleted topics whose directories are all renamed."""
    next_producer_id: ProducerId | None = None


@dataclass(slots=True, kw_only=True)
class CatalogContent:
    """The content of the catalog. `apply` changes it."""

    cluster_id: str
    next_producer_id: ProducerId = ProducerId(0)
    topics: dict[Topic, CatalogTopic] = field(default_factory=dict)
    deleting: dict[Uuid, CatalogTopic] = field(default_factory=dict)
    """Deleted topics of which some directories may still have their name."""
    sequence: int = 0
    """The number of the last change."""

    def apply(self, change: CatalogChange) -> None:
        self.sequence += 1
        for topic_id in change.removed:
            self.deleting.pop(topic_id, None)
        for name in change.deleted:
            topic = self.topics.pop(name)
            self.deleting[topic.topic_id] = topic
        for topic in change.topics:
            self.topics[topic.name] = topic
        if change.next_producer_id is not None:
            self.next_producer_id = change.next_producer_id


@value
class StoredCatalog:
    """The catalog of a directory, and the state of its files."""

    content: CatalogContent
    snapshot_bytes: int
    journal_bytes: int
    """Without an incomplete change at the end, which a crash may leave."""
    has_journal: bool
    """False for format 1."""


def lock_directory(disk: Disk) -> Lock:
    """Lock a data directory, and create it if missing. Raises DataDirectoryError."""
    try:
        disk.make_directory("")
        _check_not_foreign(disk)
        lock = disk.lock(LOCK)
    except StorageError as error:
        raise DataDirectoryError(f"{disk.name} cannot be used: {error.reason}") from error
    if lock is None:
        raise DataDirectoryError(f"{disk.name} is in use by another process")
    return lock


def _check_not_foreign(disk: Disk) -> None:
    listed = disk.list("")
    if CATALOG in listed:
        return
    if KAFKA_PROPERTIES in listed:
        raise DataDirectoryError(
            f"{disk.name} belongs to Apache Kafka: it contains {KAFKA_PROPERTIES}"
        )
    unknown = sorted(set(listed) - _ALLOWED_WITHOUT_CATALOG)
    if unknown:
        raise DataDirectoryError(
            f"{disk.name} is not a Kohort data directory: it has no {CATALOG}, but contains"
            f" {unknown[0]}"
        )


# Encoding


def encode_content(content: CatalogContent) -> bytes:
    """One topic per line."""
    table: dict[str, Any] = {
        "format": FORMAT,
        "sequence": content.sequence,
        "cluster_id": content.cluster_id,
        "next_producer_id": content.next_producer_id,
        "topics": {topic.name: _encode_topic(topic) for topic in content.topics.values()},
        "deleting": [
            {"name": topic.name, **_encode_topic(topic)} for topic in content.deleting.values()
        ],
    }
    table[_CHECKSUM] = _checksum(table)
    lines = [f'"{key}": {_encode_value(each)}' for key, each in table.items()]
    return ("{" + ",\n".join(lines) + "}\n").encode()


def _encode_value(value: object) -> str:
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {json.dumps(each)}" for key, each in value.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def _checksum(table: Mapping[str, Any]) -> int:
    return checksum(json.dumps(table).encode())


def encode_change(change: CatalogChange, sequence: int) -> bytes:
    fields: dict[str, object] = {"sequence": sequence}
    if change.topics:
        fields["topics"] = {topic.name: _encode_topic(topic) for topic in change.topics}
    if change.deleted:
        fields["deleted"] = change.deleted
    if change.removed:
        fields["removed"] = [encode_uuid(each) for each in change.removed]
    if change.next_producer_id is not None:
        fields["next_producer_id"] = change.next_producer_id
    text = json.dumps(fields).encode()
    return b"%08x %b\n" % (checksum(text), text)


def _encode_topic(topic: CatalogTopic) -> dict[str, object]:
    return {
        "topic_id": encode_uuid(topic.topic_id),
        "partitions": topic.partition_count,
        "settings": dict(topic.settings),
    }


# Decoding


def find_catalog(disk: Disk) -> StoredCatalog | None:
    """None if the directory has no catalog. Raises DataDirectoryError if it is corrupt."""
    listed = disk.list("")
    if CATALOG not in listed:
        return None
    content, format_number = _read_snapshot(disk)
    if format_number == _FORMAT_WITHOUT_JOURNAL:
        return StoredCatalog(
            content=content, snapshot_bytes=listed[CATALOG], journal_bytes=0, has_journal=False
        )
    if CATALOG_JOURNAL not in listed:
        raise DataDirectoryError(f"{disk.name}/{CATALOG_JOURNAL} is missing")
    where = f"{disk.name}/{CATALOG_JOURNAL}"
    journal_bytes = _replay(content, read_file(disk, CATALOG_JOURNAL), where)
    return StoredCatalog(
        content=content,
        snapshot_bytes=listed[CATALOG],
        journal_bytes=journal_bytes,
        has_journal=True,
    )


def _read_snapshot(disk: Disk) -> tuple[CatalogContent, int]:
    where = f"{disk.name}/{CATALOG}"
    try:
        stored = json.loads(read_file(disk, CATALOG))
        format_number = int(stored["format"])
        if format_number > FORMAT:
            raise DataDirectoryError(
                f"{where} has format {format_number}, written by a newer version of Kohort;"
                f" this version supports up to {FORMAT}"
            )
        stored_checksum = stored.pop(_CHECKSUM, None)
        if stored_checksum is not None and stored_checksum != _checksum(stored):
            raise DataDirectoryError(
                f"{where} is corrupt: its checksum is wrong; restore the file, or correct it and"
                f" remove the field {_CHECKSUM}"
            )
        return _decode_content(stored), format_number
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataDirectoryError(f"{where} is corrupt: {error!r}") from error


def _replay(content: CatalogContent, data: bytes, where: str) -> int:
    """Apply the changes to the content. Returns the length of all complete changes.

    Every change is synced before the next one is written, so a crash leaves at most the last one
    incomplete.
    """
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        text = _checked(data[position:end])
        if text is None:
            break
        try:
            stored = json.loads(text)
            sequence = int(stored["sequence"])
            if sequence > content.sequence + 1:
                missing = content.sequence + 1
                raise DataDirectoryError(f"{where} is corrupt: change {missing} is missing")
            if sequence > content.sequence:
                content.apply(_decode_change(stored))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataDirectoryError(f"{where} is corrupt at {position}: {error!r}") from error
        position = end + 1
    if any(_checked(line) is not None for line in data[position:].split(b"\n")[1:-1]):
        raise DataDirectoryError(f"{where} is corrupt at {position}: the checksum does not match")
    return position


def _checked(line: bytes) -> bytes | None:
    """The JSON text of a line, or None if the line is invalid."""
    text = line[_CRC_DIGITS + 1 :]
    return text if line == b"%08x %b" % (checksum(text), text) else None


def _decode_change(stored: Mapping[str, Any]) -> CatalogChange:
    next_producer_id = stored.get("next_producer_id")
    return CatalogChange(
        topics=tuple(_decode_topics(stored.get("topics", {}).items())),
        deleted=tuple(Topic(str(name)) for name in stored.get("deleted", ())),
        removed=tuple(_decode_id(text) for text in stored.get("removed", ())),
        next_producer_id=None if next_producer_id is None else ProducerId(int(next_producer_id)),
    )


def _decode_content(stored: Mapping[str, Any]) -> CatalogContent:
    topics = _decode_topics(stored["topics"].items())
    deleting = _decode_topics((each["name"], each) for each in stored.get("deleting", ()))
    return CatalogContent(
        cluster_id=str(stored["cluster_id"]),
        next_producer_id=ProducerId(int(stored.get("next_producer_id", 0))),
        topics={topic.name: topic for topic in topics},
        deleting={topic.topic_id: topic for topic in deleting},
        sequence=int(stored.get("sequence", 0)),
    )


def _decode_topics(stored: Iterable[tuple[str, Mapping[str, Any]]]) -> list[CatalogTopic]:
    return [
        CatalogTopic(
            name=Topic(name),
            topic_id=_decode_id(topic["topic_id"]),
            partition_count=int(topic["partitions"]),
            settings={str(key): str(text) for key, text in topic.get("settings", {}).items()},
        )
        for name, topic in stored
    ]


def _decode_id(text: str) -> Uuid:
    topic_id = decode_uuid(text)
    if topic_id is None:
        raise ValueError(f"{text!r} is not a topic id")
    return topic_id
