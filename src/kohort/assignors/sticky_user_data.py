"""The user data of the sticky assignors, in the formats of Kafka's own assignors.

Neither format has a version field, so decoding tries the newest first. Bytes that cannot be decoded
count as "owns nothing": another client library's user data must not break the assignment.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from kohort.assignors.assignor import NO_GENERATION
from kohort.types import Generation, TopicPartition
from kohort.wire.consumer_protocol import TopicPartitions
from kohort.wire.errors import MalformedMessage
from kohort.wire.message_codec import decoder, encode
from kohort.wire.schema import array, int32, message


@message(versions=(0, 1))
class StickyUserData:
    """Version 0, used before Kafka 2.3, has no generation."""

    previous_assignment: tuple[TopicPartitions, ...] = array(TopicPartitions)
    generation: Generation = int32(since=1, default=NO_GENERATION)


@message(versions=(0, 0))
class CooperativeUserData:
    """The generation, for leaders that read subscriptions below version 2 (KIP-792)."""

    generation: Generation = int32(default=NO_GENERATION)


def encode_sticky(assigned: Iterable[TopicPartition], generation: Generation) -> bytes:
    topics = tuple(
        TopicPartitions(topic=topic, partitions=tuple(each.partition for each in partitions))
        for topic, partitions in groupby(sorted(assigned), key=attrgetter("topic"))
    )
    return encode(StickyUserData(previous_assignment=topics, generation=generation), version=1)


def decode_sticky(data: bytes | None) -> tuple[tuple[TopicPartition, ...], Generation]:
    """Return the last assignment of the member, and its generation."""
    for version in (1, 0):
        try:
            decoded: StickyUserData = decoder(StickyUserData, version)(data or b"", 0)[0]
        except MalformedMessage:
            continue
        partitions = tuple(
            TopicPartition(each.topic, partition)
            for each in decoded.previous_assignment
            for partition in each.partitions
        )
        return partitions, decoded.generation
    return (), NO_GENERATION


def encode_cooperative(generation: Generation) -> bytes:
    return encode(CooperativeUserData(generation=generation), version=0)


def decode_cooperative(data: bytes | None) -> Generation:
    try:
        decoded: CooperativeUserData = decoder(CooperativeUserData, 0)(data or b"", 0)[0]
    except MalformedMessage:
        return NO_GENERATION
    return decoded.generation
