"""What the sticky assignors write into subscriptions, in the formats of Kafka's own.

Neither format says its version, so reading is trying. Bytes that cannot be read are no claim: a
member of another make may write what it likes, and must not keep the group from its assignment.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from kohort.client.assignors.assignor import NO_GENERATION
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation
from kohort.wire.compiler import decoder, encode
from kohort.wire.embedded import TopicPartitions
from kohort.wire.errors import MalformedMessage
from kohort.wire.schema import array, int32, message


@message(versions=(0, 1))
class StickyUserData:
    """Version 0, from before Kafka 2.3, does not tell the generation."""

    previous_assignment: tuple[TopicPartitions, ...] = array(TopicPartitions)
    generation: Generation = int32(since=1, default=NO_GENERATION)


@message(versions=(0, 0))
class CooperativeUserData:
    """What subscriptions themselves tell since their version 2, for leaders that know only 1."""

    generation: Generation = int32(default=NO_GENERATION)


def encode_sticky(assigned: Iterable[TopicPartition], generation: Generation) -> bytes:
    topics = tuple(
        TopicPartitions(topic=topic, partitions=tuple(each.partition for each in partitions))
        for topic, partitions in groupby(sorted(assigned), key=attrgetter("topic"))
    )
    return encode(StickyUserData(previous_assignment=topics, generation=generation), version=1)


def decode_sticky(data: bytes | None) -> tuple[tuple[TopicPartition, ...], Generation]:
    """What the member was last assigned, and in which generation."""
    for version in (1, 0):
        try:
            told: StickyUserData = decoder(StickyUserData, version)(data or b"", 0)[0]
        except MalformedMessage:
            continue
        partitions = tuple(
            TopicPartition(each.topic, partition)
            for each in told.previous_assignment
            for partition in each.partitions
        )
        return partitions, told.generation
    return (), NO_GENERATION


def encode_cooperative(generation: Generation) -> bytes:
    return encode(CooperativeUserData(generation=generation), version=0)


def decode_cooperative(data: bytes | None) -> Generation:
    try:
        told: CooperativeUserData = decoder(CooperativeUserData, 0)(data or b"", 0)[0]
    except MalformedMessage:
        return NO_GENERATION
    return told.generation
