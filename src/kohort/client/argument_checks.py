"""Checks of the arguments of public calls: topics, partitions, patterns and offsets."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from kohort.client.errors import IllegalArgumentError
from kohort.client.member.member_events import OffsetAndMetadata
from kohort.types import Offset, Partition, Topic, TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int | OffsetAndMetadata]
"""Offsets to commit: of the next record to read in each partition."""

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""As in Kafka."""

_METADATA_BYTES_MAX: Final = 32_767
"""The limit of the wire format. Brokers accept 4096 bytes by default."""


def check_topics(given: str | Iterable[str] | re.Pattern[str]) -> frozenset[Topic]:
    assert not isinstance(given, re.Pattern)
    names: list[object] = [given] if isinstance(given, str) else list(given)
    for name in names:
        if not isinstance(name, str) or not _TOPIC.fullmatch(name) or name in (".", ".."):
            raise IllegalArgumentError(
                f"{name!r} is not a valid topic name: "
                "use up to 249 letters, digits, dots, underscores and dashes"
            )
    if not names:
        raise IllegalArgumentError("no topics to subscribe to; call unsubscribe() to leave")
    return frozenset(Topic(str(name)) for name in names)


def find_pattern(
    topics: str | Iterable[str] | re.Pattern[str], pattern: str | re.Pattern[str] | None
) -> re.Pattern[str] | None:
    if isinstance(topics, re.Pattern) or (isinstance(topics, str) and topics.startswith("^")):
        if pattern is not None:
            raise IllegalArgumentError("give either topics or a pattern, not both")
        pattern = topics
    elif pattern is not None and topics:
        raise IllegalArgumentError("give either topics or a pattern, not both")
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise IllegalArgumentError(f"{pattern!r} is not a regular expression: {error}") from None


def check_partitions(given: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
    """Plain (topic, partition) tuples are accepted too."""
    return frozenset(_check_partition(each) for each in given)


def _check_partition(given: object) -> TopicPartition:
    match given:
        case (str() as topic, int() as partition) if partition >= 0 and _TOPIC.fullmatch(topic):
            return TopicPartition(Topic(topic), Partition(partition))
    raise IllegalArgumentError(f"{given!r} is not a TopicPartition")


def check_offsets(given: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for key, each in given.items():
        partition = _check_partition(key)
        name = f"{partition.topic}-{partition.partition}"
        offset = (
            each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(offset=Offset(each))
        )
        if offset.offset < 0:
            raise IllegalArgumentError(f"{name}: offset {offset.offset} is negative")
        if len(offset.metadata.encode()) > _METADATA_BYTES_MAX:
            raise IllegalArgumentError(
                f"{name}: metadata is longer than {_METADATA_BYTES_MAX} bytes"
            )
        offsets[partition] = offset
    return offsets
