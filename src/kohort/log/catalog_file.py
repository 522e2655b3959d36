"""The catalog file, and the check whether a directory may be used as a data directory.

    {"format": 1, "cluster_id": ..., "next_producer_id": ...,
     "topics": {name: {"topic_id": ..., "partitions": ..., "settings": {...}}},
     "deleting": [{"name": ..., "topic_id": ..., "partitions": ...}]}

A change that older versions cannot read increments the format number: older versions then reject
the directory before they change it. Unknown fields are dropped.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from kohort.log.checkpoint import decode_uuid, encode_uuid
from kohort.log.disk import Disk, Lock, read_file
from kohort.log.errors import DataDirectoryError, StorageError
from kohort.log.file_names import CATALOG, KAFKA_PROPERTIES, LOCK
from kohort.types import ProducerId, Topic, Uuid, value

FORMAT: Final = 1

_ALLOWED_WITHOUT_CATALOG: Final = frozenset({LOCK, CATALOG + ".tmp", "lost+found"})
"""Names that a directory without a catalog may contain."""


@value
class CatalogTopic:
    name: Topic
    topic_id: Uuid
    partition_count: int
    settings: Mapping[str, str]
    """The topic's overrides. All other settings have defaults."""


@value
class CatalogContent:
    """The content of the catalog file."""

    cluster_id: str
    next_producer_id: ProducerId
    topics: Mapping[Topic, CatalogTopic]
    deleting: tuple[CatalogTopic, ...]
    """Deleted topics of which some directories may remain."""


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


def write_content(disk: Disk, content: CatalogContent) -> None:
    text = json.dumps(
        {
            "format": FORMAT,
            "cluster_id": content.cluster_id,
            "next_producer_id": content.next_producer_id,
            "topics": {
                topic.name: {
                    "topic_id": encode_uuid(topic.topic_id),
                    "partitions": topic.partition_count,
                    "settings": dict(topic.settings),
                }
                for topic in content.topics.values()
            },
            "deleting": [
                {
                    "name": topic.name,
                    "topic_id": encode_uuid(topic.topic_id),
                    "partitions": topic.partition_count,
                }
                for topic in content.deleting
            ],
        },
        indent=1,
    )
    disk.write_atomically(CATALOG, text.encode() + b"\n")


def find_content(disk: Disk) -> CatalogContent | None:
    """None if the directory has no catalog."""
    if CATALOG not in disk.list(""):
        return None
    where = f"{disk.name}/{CATALOG}"
    try:
        content = json.loads(read_file(disk, CATALOG))
        format_number = int(content["format"])
        if format_number > FORMAT:
            raise DataDirectoryError(
                f"{where} has format {format_number}, written by a newer version of Kohort;"
                f" this version supports up to {FORMAT}"
            )
        return _decode(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataDirectoryError(f"{where} is corrupt: {error!r}") from error


def _decode(content: Mapping[str, Any]) -> CatalogContent:
    topics = [_decode_topic(name, topic) for name, topic in content["topics"].items()]
    deleting = [_decode_topic(topic["name"], topic) for topic in content.get("deleting", ())]
    return CatalogContent(
        cluster_id=str(content["cluster_id"]),
        next_producer_id=ProducerId(int(content.get("next_producer_id", 0))),
        topics={topic.name: topic for topic in topics},
        deleting=tuple(deleting),
    )


def _decode_topic(name: str, topic: Mapping[str, Any]) -> CatalogTopic:
    topic_id = decode_uuid(topic["topic_id"])
    if topic_id is None:
        raise ValueError(f"topic {name} has no valid id")
    return CatalogTopic(
        name=Topic(name),
        topic_id=topic_id,
        partition_count=int(topic["partitions"]),
        settings={str(key): str(text) for key, text in topic.get("settings", {}).items()},
    )
