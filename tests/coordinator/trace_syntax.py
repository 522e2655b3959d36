"""The syntax of durations, partitions, assignments and subscriptions in traces."""

import re

from kohort.coordinator.commands import Protocol
from kohort.types import ZERO_UUID, Millis, Partition, Topic, Uuid
from kohort.wire.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kohort.wire.errors import MalformedMessage

_UNITS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def millis(text: str) -> Millis:
    """`250`, `10s`, `5m`, `1h`, `7d`."""
    match = re.fullmatch(r"(-?\d+)([a-z]*)", text)
    assert match is not None, f"{text!r} is not a duration"
    return Millis(int(match[1]) * _UNITS[match[2]])


def format_millis(ms: int) -> str:
    return f"{ms // 1_000}s" if ms and ms % 1_000 == 0 else str(ms)


def topic_and_id(text: str) -> tuple[Topic, Uuid]:
    """`t1`, or `t1@7` with topic id 7."""
    name, _, number = text.partition("@")
    return Topic(name), Uuid(int(number).to_bytes(16)) if number else ZERO_UUID


def format_topic(topic: Topic, topic_id: Uuid = ZERO_UUID) -> str:
    return topic if topic_id == ZERO_UUID else f"{topic}@{int.from_bytes(topic_id)}"


def partitions(text: str) -> tuple[TopicPartitions, ...]:
    """`t1:0,1;t2:0`"""
    found = []
    for part in text.split(";"):
        topic, _, numbers = part.partition(":")
        found.append(
            TopicPartitions(
                topic=Topic(topic),
                partitions=tuple(Partition(int(n)) for n in numbers.split(",") if n),
            )
        )
    return tuple(found)


def format_partitions(owned: tuple[TopicPartitions, ...]) -> str:
    return ";".join(f"{each.topic}:{','.join(map(str, each.partitions))}" for each in owned)


def assignment(text: str) -> bytes:
    """`t1:0,1` is an encoded assignment; text without a colon stands for its bytes."""
    if ":" not in text:
        return text.encode("ascii")
    return encode_assignment(Assignment(assigned_partitions=partitions(text)))


def format_assignment(data: bytes) -> str:
    if is_text(data):
        return data.decode("ascii")
    try:
        return format_partitions(decode_assignment(data).assigned_partitions)
    except MalformedMessage:
        return f"0x{data.hex()}"


def subscription(topics: str | None, owned: str | None) -> bytes:
    if topics is None:
        return b""
    return encode_subscription(
        Subscription(
            topics=tuple(Topic(topic) for topic in topics.split(",") if topic),
            owned_partitions=partitions(owned) if owned else (),
        )
    )


def format_subscription(data: bytes) -> str:
    """In brackets; empty without metadata."""
    if not data:
        return ""
    if is_text(data):
        return f"[{data.decode('ascii')}]"
    try:
        decoded = decode_subscription(data)
    except MalformedMessage:
        return f"[0x{data.hex()}]"
    owned = format_partitions(decoded.owned_partitions)
    return f"[{','.join(decoded.topics)}{'+' + owned if owned else ''}]"


def protocol(text: str, metadata: bytes) -> Protocol:
    """`range`, with the given subscription, or `range(metadata)`."""
    match = re.fullmatch(r"([\w.-]+)(?:\((.*)\))?", text)
    assert match is not None, f"{text!r} is not a protocol"
    own = match[2]
    return Protocol(name=match[1], metadata=metadata if own is None else own.encode("ascii"))


def is_text(data: bytes) -> bool:
    return all(32 < byte < 127 for byte in data)
