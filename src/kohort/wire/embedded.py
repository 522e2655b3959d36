"""The consumer protocol that travels inside JoinGroup and SyncGroup: subscriptions, assignments.

The coordinator carries these bytes without reading them; members write them for one another.
Each begins with its own two-byte version, and newer versions only ever append: a reader takes the
fields it knows and ignores what follows.

Version notes:
 1  a subscription tells the partitions its member owns (KIP-429, cooperative rebalancing)
 2  and the generation it owned them in, so that a stale claim can be told from a fresh one
 3  and the member's rack (KIP-881)
 An assignment's fields are the same in all four.
"""

from struct import Struct
from typing import Final, TypeVar

from kohort.types import Generation, Partition, Topic
from kohort.wire.compiler import decoder, encoder
from kohort.wire.errors import MalformedMessage
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


def encode_versioned(value: object, version: int) -> bytes:
    """A value behind its own two-byte version, as embedded data and stored records have it."""
    parts = [_VERSION.pack(version)]
    encoder(type(value), version)(value, parts)
    return b"".join(parts)


def read_version(name: str, data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessage(name, "version", 0, "the bytes end here")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage(name, "version", 0, f"a version of {version}")
    return version


def _decode(cls: type[T], data: bytes) -> T:
    version = min(read_version(cls.__name__, data), schema_of(cls).versions[-1])
    value: T = decoder(cls, version)(data, _VERSION.size)[0]
    return value
