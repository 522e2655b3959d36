"""What programs say, read with care: names of topics and partitions, patterns, offsets."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from kohort.client.errors import WrongUse
from kohort.client.member.events import Position
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, Partition, Topic

Offsets: TypeAlias = Mapping[TopicPartition, int | Position]
"""What to commit: the offsets of the records that come next; a Position may have metadata."""

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""As Kafka has it."""

_METADATA_BYTES_MAX: Final = 32_767
"""What the wire can hold; brokers take less, 4096 bytes unless they are told otherwise."""


def named_topics(given: str | Iterable[str] | re.Pattern[str]) -> frozenset[Topic]:
    assert not isinstance(given, re.Pattern)
    names: list[object] = [given] if isinstance(given, str) else list(given)
    for name in names:
        if not isinstance(name, str) or not _TOPIC.fullmatch(name) or name in (".", ".."):
            raise WrongUse(
                f"{name!r} cannot be a topic: up to 249 letters, digits, dots, underscores, dashes"
            )
    if not names:
        raise WrongUse("there is no topic to subscribe to; unsubscribe() leaves the group")
    return frozenset(Topic(str(name)) for name in names)


def read_pattern(
    topics: str | Iterable[str] | re.Pattern[str], pattern: str | re.Pattern[str] | None
) -> re.Pattern[str] | None:
    """The pattern, if that is what was given."""
    if isinstance(topics, re.Pattern) or (isinstance(topics, str) and topics.startswith("^")):
        if pattern is not None:
            raise WrongUse("subscribe to topics or to a pattern, not to both")
        pattern = topics
    elif pattern is not None and topics:
        raise WrongUse("subscribe to topics or to a pattern, not to both")
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise WrongUse(f"{pattern!r} is not a pattern: {error}") from None


def named_partitions(given: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
    """Pairs of topic and number will do."""
    return frozenset(_named(each) for each in given)


def _named(given: object) -> TopicPartition:
    match given:
        case (str() as topic, int() as partition) if partition >= 0 and _TOPIC.fullmatch(topic):
            return TopicPartition(Topic(topic), Partition(partition))
    raise WrongUse(f"{given!r} is not a TopicPartition")


def read_positions(given: Offsets) -> dict[TopicPartition, Position]:
    positions: dict[TopicPartition, Position] = {}
    for partition, told in given.items():
        position = told if isinstance(told, Position) else Position(offset=Offset(told))
        if position.offset < 0:
            raise WrongUse(f"{partition}: an offset cannot be {position.offset}")
        if len(position.metadata.encode()) > _METADATA_BYTES_MAX:
            raise WrongUse(f"{partition}: its metadata is longer than {_METADATA_BYTES_MAX} bytes")
        positions[_named(partition)] = position
    return positions
