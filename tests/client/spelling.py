"""How a member's traces spell partitions, positions, subscriptions and errors."""

import re
from collections.abc import Iterable, Mapping

from kohort.client.errors import BrokerRefused, ConsumerError, GroupRefused
from kohort.client.member.events import Position
from kohort.client.member.leading import flat, grouped
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, Offset, Partition, Topic
from kohort.wire.embedded import Subscription, decode_subscription, encode_subscription
from tests.coordinator.spelling import partitions as topic_partitions
from tests.coordinator.spelling import tell_partitions as tell_topic_partitions


def topics(text: str) -> frozenset[Topic]:
    """`t1,t2`, or `-` for none."""
    return frozenset(Topic(each) for each in text.split(",") if each != "-")


def tell_topics(named: Iterable[Topic]) -> str:
    return ",".join(sorted(set(named))) or "-"


def partitions(text: str) -> frozenset[TopicPartition]:
    """`t1:0,1;t2:0`, or `-` for none."""
    return frozenset(flat(topic_partitions(text))) if text != "-" else frozenset()


def tell_partitions(named: Iterable[TopicPartition]) -> str:
    return tell_topic_partitions(grouped(named)) or "-"


def position(text: str) -> tuple[TopicPartition, Position]:
    """`t1:0=5`, or `t1:0=5/3` with a leader epoch."""
    match = re.fullmatch(r"([\w.-]+):(\d+)=(-?\d+)(?:/(\d+))?", text)
    assert match is not None, f"{text!r} is no position"
    at = TopicPartition(Topic(match[1]), Partition(int(match[2])))
    epoch = -1 if match[4] is None else int(match[4])
    return at, Position(offset=Offset(int(match[3])), leader_epoch=epoch)


def tell_position(at: TopicPartition, told: Position) -> str:
    epoch = "" if told.leader_epoch == -1 else f"/{told.leader_epoch}"
    metadata = f"({told.metadata})" if told.metadata else ""
    return f"{at.topic}:{at.partition}={told.offset}{epoch}{metadata}"


def tell_positions(told: Mapping[TopicPartition, Position]) -> str:
    return " ".join(tell_position(at, told[at]) for at in sorted(told)) or "-"


def subscription(text: str) -> bytes:
    """`t1,t2`, `t1+t1:0,1` with what is owned, and `t1+t1:0,1@3` since which generation."""
    match = re.fullmatch(r"([^+@]*)(?:\+([^@]*))?(?:@(-?\d+))?", text)
    assert match is not None, f"{text!r} is no subscription"
    return encode_subscription(
        Subscription(
            topics=tuple(sorted(topics(match[1] or "-"))),
            owned_partitions=grouped(partitions(match[2] or "-")),
            generation_id=Generation(int(match[3] or "-1")),
        )
    )


def tell_subscription(data: bytes) -> str:
    told = decode_subscription(data)
    owned = tell_topic_partitions(told.owned_partitions)
    since = "" if told.generation_id == -1 else f"@{told.generation_id}"
    rack = "" if told.rack_id is None else f" rack={told.rack_id}"
    user_data = "" if told.user_data is None else f" +{len(told.user_data)}B"
    return f"[{','.join(told.topics)}{'+' + owned if owned else ''}{since}{rack}{user_data}]"


def tell_error(error: ConsumerError) -> str:
    named = type(error).__name__
    if isinstance(error, BrokerRefused | GroupRefused):
        return f"{named}({error.code.name})"
    return named
