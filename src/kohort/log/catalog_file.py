"""The catalog on the disk, and whether a directory is ours to use.

    {"format": 1, "cluster_id": ..., "next_producer_id": ...,
     "topics": {name: {"topic_id": ..., "partitions": ..., "settings": {...}}},
     "deleting": [{"name": ..., "topic_id": ..., "partitions": ...}]}

A change that older versions cannot read takes the next format number: they then refuse the
directory, in one sentence, before they touch it. Fields nobody knows are not kept.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from kohort.log.checkpoint import decode_uuid, encode_uuid
from kohort.log.disk import Disk, Lock, read_file
from kohort.log.errors import DirectoryRefused, StorageError
from kohort.log.names import CATALOG, KAFKA_PROPERTIES, LOCK
from kohort.types import ProducerId, Topic, Uuid, value

FORMAT: Final = 1

_NOT_FOREIGN: Final = frozenset({LOCK, CATALOG + ".tmp", "lost+found"})
"""What a directory may hold before its first catalog is written."""


@value
class KeptTopic:
    name: Topic
    topic_id: Uuid
    partition_count: int
    settings: Mapping[str, str]
    """The topic's own, as they were given; all others are defaults."""


@value
class Content:
    """What the catalog's file says."""

    cluster_id: str
    next_producer_id: ProducerId
    topics: Mapping[Topic, KeptTopic]
    deleting: tuple[KeptTopic, ...]
    """Topics that are gone, but of whose directories some may still be there."""


def claim_directory(disk: Disk) -> Lock:
    """The right to use a directory; made if it is missing. Raises DirectoryRefused."""
    try:
        disk.make_directory("")
        _check_ours(disk)
        lock = disk.lock(LOCK)
    except StorageError as error:
        raise DirectoryRefused(f"{disk.name} cannot be used: {error.reason}") from error
    if lock is None:
        raise DirectoryRefused(f"{disk.name} is in use by another process")
    return lock


def _check_ours(disk: Disk) -> None:
    listed = disk.list("")
    if CATALOG in listed:
        return
    if KAFKA_PROPERTIES in listed:
        raise DirectoryRefused(f"{disk.name} belongs to Apache Kafka: it holds {KAFKA_PROPERTIES}")
    strangers = sorted(set(listed) - _NOT_FOREIGN)
    if strangers:
        raise DirectoryRefused(
            f"{disk.name} is not empty and holds no {CATALOG}; the first thing in it is"
            f" {strangers[0]}"
        )


def write_content(disk: Disk, content: Content) -> None:
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


def find_content(disk: Disk) -> Content | None:
    """None in a directory that has no catalog yet."""
    if CATALOG not in disk.list(""):
        return None
    where = f"{disk.name}/{CATALOG}"
    try:
        content = json.loads(read_file(disk, CATALOG))
        format_number = int(content["format"])
        if format_number > FORMAT:
            raise DirectoryRefused(
                f"{where} has format {format_number}, from a newer version; this one knows {FORMAT}"
            )
        return _decode(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DirectoryRefused(f"{where} is damaged: {error!r}") from error


def _decode(content: Mapping[str, Any]) -> Content:
    topics = [_decode_topic(name, topic) for name, topic in content["topics"].items()]
    deleting = [_decode_topic(topic["name"], topic) for topic in content.get("deleting", ())]
    return Content(
        cluster_id=str(content["cluster_id"]),
        next_producer_id=ProducerId(int(content.get("next_producer_id", 0))),
        topics={topic.name: topic for topic in topics},
        deleting=tuple(deleting),
    )


def _decode_topic(name: str, topic: Mapping[str, Any]) -> KeptTopic:
    topic_id = decode_uuid(topic["topic_id"])
    if topic_id is None:
        raise ValueError(f"topic {name} has no id")
    return KeptTopic(
        name=Topic(name),
        topic_id=topic_id,
        partition_count=int(topic["partitions"]),
        settings={str(key): str(text) for key, text in topic.get("settings", {}).items()},
    )
