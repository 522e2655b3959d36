"""Keys and values of the records in `__consumer_offsets`, in Kafka's formats.

A record key starts with a two-byte record type. A record value starts with a two-byte version, or
is null: a tombstone.

Record types:
 0, 1   an offset commit (0 is an older version of the same key)
 2      a classic group: its generation and members
 3 - 8  a group of the KIP-848 protocol: epoch, partitions (until 4.1), member, target epoch,
        target assignment, current assignment
 16     a regular expression of such a group, and the topics it matched
Other types belong to share and streams groups.

Version notes, offset commit value:
 1  an expiry timestamp, for requests with a retention time
 2  no expiry timestamp: retention is a setting of the broker
 3  the leader epoch of the committed record (KIP-320)
 4  flexible; the topic id is a tagged field. Kafka 4 writes 4, or 1 if an expiry is set

Version notes, classic group value:
 1  each member's rebalance timeout    2  when the group entered its current state (KIP-211)
 3  each member's instance id (KIP-345)    4  flexible. Kafka still writes 3

Two tagged fields have `"default": null` in Kafka's definitions, which Kafka's generator ignores: a
member's classic metadata and assignment epochs are empty if the tag is absent, and null only if
the tag is present with null. Kafka writes such a tag for every member that is not classic.
"""

from typing import Any, Final

from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    Uuid,
    value,
)
from kohort.wire.consumer_protocol import encode_versioned, read_version
from kohort.wire.errors import UnsupportedVersion
from kohort.wire.message_codec import decode
from kohort.wire.schema import (
    array,
    blob,
    int8,
    int32,
    int64,
    message,
    part,
    schema_of,
    string,
    struct,
    uuid,
)

_PREFIX_SIZE: Final = 2


@message(versions=(0, 1))
class OffsetCommitKey:
    group: GroupId = string()
    topic: Topic = string()
    partition: Partition = int32()


@message(versions=(0, 4), flexible_since=4)
class OffsetCommitValue:
    offset: Offset = int64()
    leader_epoch: int = int32(since=3, default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: Millis = int64()
    expire_timestamp: Millis = int64(since=1, until=1, default=-1, ignorable=True)
    topic_id: Uuid = uuid(since=4, tag=0, ignorable=True)


@message(versions=(2, 2))
class GroupMetadataKey:
    group: GroupId = string()


@part
class MemberMetadata:
    member_id: MemberId = string()
    group_instance_id: InstanceId | None = string(
        since=3, nullable_since=3, default=None, ignorable=True
    )
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: Millis = int32(since=1, default=-1, ignorable=True)
    session_timeout: Millis = int32()
    subscription: bytes = blob()
    assignment: bytes = blob()


@message(versions=(0, 4), flexible_since=4)
class GroupMetadataValue:
    protocol_type: str = string()
    generation: Generation = int32()
    protocol: str | None = string(nullable_since=0)
    leader: MemberId | None = string(nullable_since=0)
    current_state_timestamp: Millis = int64(since=2, default=-1, ignorable=True)
    members: tuple[MemberMetadata, ...] = array(MemberMetadata)


@message(versions=(3, 3))
class ConsumerGroupMetadataKey:
    group_id: GroupId = string()


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@message(versions=(4, 4))
class ConsumerGroupPartitionMetadataKey:
    group_id: GroupId = string()


@part
class PartitionMetadata:
    partition: Partition = int32()
    racks: tuple[str, ...] = array("string")


@part
class TopicMetadata:
    topic_id: Uuid = uuid()
    topic_name: Topic = string()
    num_partitions: int = int32()
    partition_metadata: tuple[PartitionMetadata, ...] = array(PartitionMetadata)


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupPartitionMetadataValue:
    topics: tuple[TopicMetadata, ...] = array(TopicMetadata)


@message(versions=(5, 5))
class ConsumerGroupMemberMetadataKey:
    group_id: GroupId = string()
    member_id: MemberId = string()


@part
class ClassicProtocol:
    name: str = string()
    metadata: bytes = blob()


@part
class ClassicMemberMetadata:
    session_timeout_ms: Millis = int32()
    supported_protocols: tuple[ClassicProtocol, ...] = array(ClassicProtocol)


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupMemberMetadataValue:
    instance_id: InstanceId | None = string(nullable_since=0)
    rack_id: str | None = string(nullable_since=0)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[Topic, ...] = array("string")
    subscribed_topic_regex: str | None = string(nullable_since=0)
    rebalance_timeout_ms: Millis = int32(default=-1)
    server_assignor: str | None = string(nullable_since=0)
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable_since=0, tag=0
    )


@message(versions=(6, 6))
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: GroupId = string()


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: Millis = int64(tag=0, ignorable=True)


@message(versions=(7, 7))
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: GroupId = string()
    member_id: MemberId = string()


@part
class TargetTopicPartitions:
    topic_id: Uuid = uuid()
    partitions: tuple[Partition, ...] = array("int32")


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: tuple[TargetTopicPartitions, ...] = array(TargetTopicPartitions)


@message(versions=(8, 8))
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: GroupId = string()
    member_id: MemberId = string()


@part
class CurrentTopicPartitions:
    topic_id: Uuid = uuid()
    partitions: tuple[Partition, ...] = array("int32")
    assignment_epochs: tuple[int, ...] | None = array("int32", nullable_since=0, tag=0)


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: tuple[CurrentTopicPartitions, ...] = array(CurrentTopicPartitions)
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...] = array(
        CurrentTopicPartitions
    )


@message(versions=(16, 16))
class ConsumerGroupRegularExpressionKey:
    group_id: GroupId = string()
    regular_expression: str = string()


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupRegularExpressionValue:
    topics: tuple[Topic, ...] = array("string")
    version: int = int64()
    timestamp: Millis = int64()


@value
class RecordSchema:
    """The message classes of the key and the value of a record type."""

    key: type
    value: type


RECORD_SCHEMAS: Final = {
    number: RecordSchema(key=key, value=content)
    for key, content in (
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
        (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    )
    for number in schema_of(key).versions
}
"""By record type: the number at the start of a record key."""

_VALUE_BY_KEY: Final = {schema.key: schema.value for schema in RECORD_SCHEMAS.values()}


def encode_key(key: object) -> bytes:
    """Encode a key with its newest record type: 1 for offset commits."""
    return encode_versioned(key, schema_of(type(key)).versions[-1])


def encode_value(value: object, version: int) -> bytes:
    return encode_versioned(value, version)


def decode_key(data: bytes) -> Any:
    """Raises UnsupportedVersion for an unknown record type."""
    number = read_version("record key", data)
    if number not in RECORD_SCHEMAS:
        raise UnsupportedVersion(None, "record key", number)
    return decode(RECORD_SCHEMAS[number].key, number, data, _PREFIX_SIZE)


def decode_value(key: object, data: bytes | None) -> Any:
    """The value for a decoded key; None for a tombstone."""
    if data is None:
        return None
    value = _VALUE_BY_KEY[type(key)]
    return decode(value, read_version(value.__name__, data), data, _PREFIX_SIZE)
