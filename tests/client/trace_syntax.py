"""Parses and formats partitions, offsets, subscriptions and errors in member traces."""

import re
from collections.abc import Iterable, Mapping

from kohort.client.errors import BrokerResponseError, ConsumerError, GroupRejectedError
from kohort.client.member.leader_assignment import flatten, group_by_topic
from kohort.client.member.member_events import OffsetAndMetadata
from kohort.types import Generation, Offset, Partition, Topic, TopicPartition
from kohort.wire.consumer_protocol import Subscription, decode_subscription, encode_subscription
from tests.coordinator.trace_syntax import format_partitions as format_topic_partitions
from tests.coordinator.trace_syntax import partitions as topic_partitions


def topics(text: str) -> frozenset[Topic]:
    """`t1,t2`, or `-` for none."""
    return frozenset(Topic(each) for each in text.split(",") if each != "-")


def format_topics(named: Iterable[Topic]) -> str:
    return ",".join(sorted(set(named))) or "-"


def partitions(text: str) -> frozenset[TopicPartition]:
    """`t1:0,1;t2:0`, or `-` for none."""
    return frozenset(flatten(topic_partitions(text))) if text != "-" else frozenset()


def format_partitions(named: Iterable[TopicPartition]) -> str:
    return format_topic_partitions(group_by_topic(named)) or "-"


def position(text: str) -> tuple[TopicPartition, OffsetAndMetadata]:
    """`t1:0=5`, or `t1:0=5/3` with a leader epoch."""
    match = re.fullmatch(r"([\w.-]+):(\d+)=(-?\d+)(?:/(\d+))?", text)
    assert match is not None, f"{text!r} is not a position"
    at = TopicPartition(Topic(match[1]), Partition(int(match[2])))
    epoch = -1 if match[4] is None else int(match[4])
    return at, OffsetAndMetadata(offset=Offset(int(match[3])), leader_epoch=epoch)


def format_position(at: TopicPartition, found: OffsetAndMetadata) -> str:
    epoch = "" if found.leader_epoch == -1 else f"/{found.leader_epoch}"
    metadata = f"({found.metadata})" if found.metadata else ""
    return f"{at.topic}:{at.partition}={found.offset}{epoch}{metadata}"


def format_positions(found: Mapping[TopicPartition, OffsetAndMetadata]) -> str:
    return " ".join(format_position(at, found[at]) for at in sorted(found)) or "-"


def subscription(text: str) -> bytes:
    """`t1,t2`; `t1+t1:0,1` with owned partitions; `t1+t1:0,1@3` with a generation."""
    match = re.fullmatch(r"([^+@]*)(?:\+([^@]*))?(?:@(-?\d+))?", text)
    assert match is not None, f"{text!r} is not a subscription"
    return encode_subscription(
        Subscription(
            topics=tuple(sorted(topics(match[1] or "-"))),
            owned_partitions=group_by_topic(partitions(match[2] or "-")),
            generation_id=Generation(int(match[3] or "-1")),
        )
    )


def format_subscription(data: bytes) -> str:
    found = decode_subscription(data)
    owned = format_topic_partitions(found.owned_partitions)
    since = "" if found.generation_id == -1 else f"@{found.generation_id}"
    rack = "" if found.rack_id is None else f" rack={found.rack_id}"
    user_data = "" if found.user_data is None else f" +{len(found.user_data)}B"
    return f"[{','.join(found.topics)}{'+' + owned if owned else ''}{since}{rack}{user_data}]"


def format_error(error: ConsumerError) -> str:
    named = type(error).__name__
    if isinstance(error, BrokerResponseError | GroupRejectedError):
        return f"{named}({error.code.name})"
    return named
