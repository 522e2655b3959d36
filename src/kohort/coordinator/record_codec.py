"""Converts records to and from the bytes of `__consumer_offsets`.

It writes the versions that Kafka 4 writes and reads every version there ever was. Records of a kind
that it does not know are kept as raw bytes.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias, assert_never
from weakref import WeakKeyDictionary

from kohort.coordinator.commands import PartitionColumns
from kohort.coordinator.records import (
    ClassicGroupMember,
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OffsetsCommitted,
    OneRecord,
    UnknownRecord,
)
from kohort.types import (
    ZERO_UUID,
    Generation,
    GroupId,
    Millis,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    value,
)
from kohort.wire import consumer_offsets as stored
from kohort.wire.consumer_protocol import read_version
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from kohort.wire.records import NO_HEADERS, encode_record_prefix

_NONE: Final = -1
"""The stored value of a number that is not set."""

_PARTITION: Final = Struct(">i")
_PREFIX: Final = Struct(">h")
"""The kind of a record, at the start of its key; the version of a value, at its start."""

_PLAIN_OFFSET: Final = Struct(">hqiBqB")
"""The value of an offset, version 4, without metadata and tags; nearly all are like this."""

_COLUMN_TIME: Final = Struct(">Bq")
_COLUMN_BYTES: Final = _PREFIX.size + 12 + _COLUMN_TIME.size
"""The size of an offset's value without its tags; offset and leader epoch have 12 bytes."""

_TOPIC_ID_TAG: Final = b"\x01\x00\x10"
"""One tag, number 0, of 16 bytes."""

_EMPTY: Final = 1
"""The length byte of an empty compact string."""

_KEYS_REMEMBERED: Final = 16_384


KeyedRecord: TypeAlias = (
    ClassicGroupMetadata | GroupRemoved | OffsetCommitted | OffsetRemoved | UnknownRecord
)
"""Records that have a key and a value; the end of a transaction is a control batch."""


@value
class Skipped:
    """A damaged record, or a newer version of a known kind. Loading goes on without it."""

    key: bytes
    reason: str


Decoded: TypeAlias = OneRecord | UnknownRecord | Skipped


class EncodedRecord(NamedTuple):
    """Key and value as they are appended; a tombstone has no value."""

    key: bytes
    value: bytes | None


def encode_record(record: KeyedRecord) -> EncodedRecord:
    match record:
        case OffsetCommitted():
            key = _offset_key(record.group_id, record.topic, record.partition)
            return EncodedRecord(key, _encode_offset(record))
        case OffsetRemoved():
            return EncodedRecord(_offset_key(record.group_id, record.topic, record.partition), None)
        case ClassicGroupMetadata():
            key = stored.encode_key(stored.GroupMetadataKey(group=record.group_id))
            return EncodedRecord(key, _encode_generation(record))
        case GroupRemoved():
            return EncodedRecord(
                stored.encode_key(stored.GroupMetadataKey(group=record.group_id)), None
            )
        case UnknownRecord():
            return EncodedRecord(record.key, record.value)
        case _:
            assert_never(record)


def encode_columns(record: OffsetsCommitted) -> bytes:
    """Encode a columnar commit as the records of one batch, from the template of its partitions."""
    columns = record.columns
    template = _TEMPLATES.get(columns.partition_columns)
    if template is None or template.group_id != record.group_id:
        template = _CommitTemplate(record.group_id, columns.partition_columns)
        _TEMPLATES[columns.partition_columns] = template
    parts = template.parts.copy()
    parts[1::4] = columns.offsets
    parts[2::4] = columns.leader_epochs
    parts[3::4] = (_COLUMN_TIME.pack(_EMPTY, record.commit_ms),) * len(columns.offsets)
    return template.pack(*parts)


class _CommitTemplate:
    """The records of a commit, with gaps for offsets, leader epochs and the commit time.

    `parts` alternates constant bytes with these three, and ends with constant bytes.
    """

    __slots__ = ("group_id", "pack", "parts")

    def __init__(self, group_id: GroupId, partition_columns: PartitionColumns) -> None:
        self.group_id = group_id
        pattern, before = ">", b""
        self.parts: list[Any] = []
        named = zip(
            partition_columns.topics,
            partition_columns.partitions,
            partition_columns.topic_ids,
            strict=True,
        )
        for index, (topic, partition, topic_id) in enumerate(named):
            tags = b"\x00" if topic_id == ZERO_UUID else _TOPIC_ID_TAG + topic_id
            key = _offset_key(group_id, topic, partition)
            size = _COLUMN_BYTES + len(tags)
            between = before + encode_record_prefix(key, size, index) + _PREFIX.pack(4)
            pattern += f"{len(between)}sqi{_COLUMN_TIME.size}s"
            self.parts += (between, 0, 0, b"")
            before = tags + NO_HEADERS
        self.pack = Struct(f"{pattern}{len(before)}s").pack
        self.parts.append(before)


_TEMPLATES: Final[WeakKeyDictionary[PartitionColumns, _CommitTemplate]] = WeakKeyDictionary()


def decode_record(
    key: bytes | None,
    value: bytes | None,
    producer_id: ProducerId | None = None,
    producer_epoch: ProducerEpoch | None = None,
) -> Decoded:
    """Decode a record of the log. The producer is that of its batch, if it is transactional."""
    if key is None:
        return Skipped(key=b"", reason="no key")
    try:
        decode, name = _decode_key(key)
        if decode is None:
            return UnknownRecord(key=key, value=value)
        return decode(name, value, producer_id, producer_epoch)
    except (MalformedMessage, UnsupportedVersion) as error:
        # DEVIATION: at a record that it cannot decode Kafka stops loading the partition. Here the
        # record is skipped and logged.
        return Skipped(key=key, reason=str(error))


def _decode_offset(
    key: stored.OffsetCommitKey,
    value: bytes | None,
    producer_id: ProducerId | None,
    producer_epoch: ProducerEpoch | None,
) -> OffsetCommitted | OffsetRemoved:
    if value is None:
        return OffsetRemoved(group_id=key.group, topic=key.topic, partition=key.partition)
    if len(value) == _PLAIN_OFFSET.size:
        version, offset, leader_epoch, metadata, commit_ms, tags = _PLAIN_OFFSET.unpack(value)
        if producer_id is None and (version, metadata, tags) == (4, _EMPTY, 0):
            return OffsetCommitted(
                key.group, key.topic, key.partition, offset, commit_ms, leader_epoch
            )
    content: stored.OffsetCommitValue = stored.decode_value(key, value)
    expire_ms = content.expire_timestamp
    return OffsetCommitted(
        group_id=key.group,
        topic=key.topic,
        partition=key.partition,
        offset=content.offset,
        leader_epoch=content.leader_epoch,
        metadata=content.metadata,
        commit_ms=content.commit_timestamp,
        expire_ms=None if expire_ms == _NONE else expire_ms,
        topic_id=content.topic_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def _decode_classic_group(
    key: stored.GroupMetadataKey,
    value: bytes | None,
    _producer_id: ProducerId | None,
    _producer_epoch: ProducerEpoch | None,
) -> ClassicGroupMetadata | GroupRemoved:
    if value is None:
        return GroupRemoved(group_id=key.group)
    content: stored.GroupMetadataValue = stored.decode_value(key, value)
    return ClassicGroupMetadata(
        group_id=key.group,
        protocol_type=content.protocol_type,
        generation=Generation(content.generation),
        protocol=content.protocol,
        leader=content.leader,
        state_since_ms=content.current_state_timestamp,
        members=tuple(map(_classic_member, content.members)),
    )


def _classic_member(member: stored.MemberMetadata) -> ClassicGroupMember:
    # Version 0 has no rebalance timeout: the session timeout is used for both.
    has_timeout = member.rebalance_timeout != _NONE
    return ClassicGroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout if has_timeout else member.session_timeout,
        session_timeout_ms=member.session_timeout,
        subscription=member.subscription,
        assignment=member.assignment,
    )


_Decoder: TypeAlias = Callable[
    [Any, bytes | None, ProducerId | None, ProducerEpoch | None], OneRecord
]

_DECODERS: Final[Mapping[int, _Decoder]] = {
    0: _decode_offset,
    1: _decode_offset,
    2: _decode_classic_group,
}
"""By the kind of the record, which is the number its key begins with. Other kinds stay raw."""


# A group commits the same partitions repeatedly, so encoded and decoded keys are cached.


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _offset_key(group_id: GroupId, topic: Topic, partition: Partition) -> bytes:
    return _offset_key_start(group_id, topic) + _PARTITION.pack(partition)


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _offset_key_start(group_id: GroupId, topic: Topic) -> bytes:
    """The partition is the last field of the key."""
    key = stored.OffsetCommitKey(group=group_id, topic=topic, partition=Partition(0))
    return stored.encode_key(key)[: -_PARTITION.size]


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _decode_key(key: bytes) -> tuple[_Decoder | None, Any]:
    """Return the decoder of the record's kind and the decoded key, or None for an unknown kind."""
    decode = _DECODERS.get(read_version("record key", key))
    return (None, None) if decode is None else (decode, stored.decode_key(key))


def _encode_offset(record: OffsetCommitted) -> bytes:
    if not record.metadata and record.expire_ms is None and record.topic_id == ZERO_UUID:
        return _PLAIN_OFFSET.pack(
            4, record.offset, record.leader_epoch, _EMPTY, record.commit_ms, 0
        )
    # An explicit expiry exists only in version 1, which has no leader epoch: Kafka writes it so.
    version = 4 if record.expire_ms is None else 1
    content = stored.OffsetCommitValue(
        offset=record.offset,
        leader_epoch=record.leader_epoch,
        metadata=record.metadata,
        commit_timestamp=record.commit_ms,
        expire_timestamp=Millis(_NONE) if record.expire_ms is None else record.expire_ms,
        topic_id=record.topic_id,
    )
    return stored.encode_value(content, version)


def _encode_generation(record: ClassicGroupMetadata) -> bytes:
    members = [
        stored.MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in record.members
    ]
    content = stored.GroupMetadataValue(
        protocol_type=record.protocol_type,
        generation=record.generation,
        protocol=record.protocol,
        leader=record.leader,
        current_state_timestamp=record.state_since_ms,
        members=tuple(members),
    )
    return stored.encode_value(content, 3)
