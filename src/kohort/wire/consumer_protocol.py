"""The consumer protocol inside JoinGroup and SyncGroup: subscriptions and assignments.

Members write these bytes for one another; the coordinator does not read them. They start with a
two-byte version. Newer versions only append fields, so a reader decodes the fields it knows and
ignores the rest.

Version notes:
 1  the subscription has the owned partitions (KIP-429, cooperative rebalancing)
 2  the subscription has the generation of the owned partitions, to detect stale ownership
 3  the subscription has the member's rack (KIP-881)
 All versions of an assignment have the same fields.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, TypeVar

from kohort.types import Generation, Partition, Topic, TopicPartition
from kohort.wire.errors import MalformedMessage
from kohort.wire.message_codec import decoder, encoder
from kohort.wire.schema import array, blob, int32, message, part, schema_of, string

T = TypeVar("T")

_VERSION: Final = Struct(">h")


@part
class TopicPartitions:
    topic: Topic = string()
    partitions: tuple[Partition, ...] = array("int32")


@message(versions=(0, 3))
class Subscription:
    topics: tuple[Topic, ...] = array("string")
    user_data: bytes | None = blob(nullable_since=0, default=None)
    owned_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions, since=1, ignorable=True)
    generation_id: Generation = int32(since=2, default=-1, ignorable=True)
    rack_id: str | None = string(since=3, nullable_since=3, default=None, ignorable=True)


@message(versions=(0, 3))
class Assignment:
    assigned_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)
    user_data: bytes | None = blob(nullable_since=0, default=None)


def encode_subscription(subscription: Subscription, version: int = 3) -> bytes:
    return encode_versioned(subscription, version)


def decode_subscription(data: bytes) -> Subscription:
    return _decode(Subscription, data)


def encode_assignment(assignment: Assignment, version: int = 3) -> bytes:
    return encode_versioned(assignment, version)


def decode_assignment(data: bytes) -> Assignment:
    return _decode(Assignment, data)


def sorted_partitions(topics: Iterable[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(each.topic, number) for each in topics for number in each.partitions)
    )


def encode_versioned(value: object, version: int) -> bytes:
    """Encode a value with a two-byte version before it, as in embedded data and stored records."""
    parts = [_VERSION.pack(version)]
    encoder(type(value), version)(value, parts)
    return b"".join(parts)


def read_version(name: str, data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessage(name, "version", 0, "the bytes end here")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage(name, "version", 0, f"version {version} is negative")
    return version


def _decode(cls: type[T], data: bytes) -> T:
    version = min(read_version(cls.__name__, data), schema_of(cls).versions[-1])
    value: T = decoder(cls, version)(data, _VERSION.size)[0]
    return value
