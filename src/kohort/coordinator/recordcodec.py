"""Between records and the bytes of `__consumer_offsets`: the one file here that sees the wire.

Writing uses the versions Kafka 4 itself writes; reading takes every version there ever was.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final, TypeAlias

from kohort.coordinator.commands import Places
from kohort.coordinator.records import (
    FormedMember,
    GenerationFormed,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OffsetsCommitted,
    OneRecord,
    Record,
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
    maker,
    value,
)
from kohort.wire import consumer_offsets as stored
from kohort.wire.compiler import decoder
from kohort.wire.embedded import Subscription
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from kohort.wire.records import NO_HEADERS, encode_start

_NONE: Final = -1
"""How the stored formats say that there is no such number."""

_VERSION_SIZE: Final = 2

_PLAIN_OFFSET: Final = Struct(">hqiBqB")
"""An offset in version 4 with neither metadata nor tags: nearly all are, so they go straight."""

_PLAIN_START: Final = Struct(">h")
_PLAIN_NUMBERS: Final = Struct(">qi")
_PLAIN_END: Final = Struct(">BqB")
"""The same in three parts: its version, its numbers, and what all offsets of a commit share."""

_pack_numbers: Final = _PLAIN_NUMBERS.pack

_COLUMN_TIME: Final = Struct(">Bq")
_COLUMN_BYTES: Final = _PLAIN_START.size + _PLAIN_NUMBERS.size + _COLUMN_TIME.size
"""An offset's value up to its tags."""

_TOPIC_ID_TAG: Final = b"\x01\x00\x10"
"""One tag, number 0, of 16 bytes."""

_EMPTY: Final = 1
"""The length byte of an empty compact string."""

_KEYS_REMEMBERED: Final = 16_384

_OffsetKey: Final = stored.OffsetCommitKey

_make_offset: Final = maker(OffsetCommitted)
_make_stored_member: Final = maker(stored.MemberMetadata)


KeptRecord: TypeAlias = GenerationFormed | GroupRemoved | OffsetCommitted | OffsetRemoved
"""Records that have a key and a value; the end of a transaction is a batch of its own kind."""


@value
class Skipped:
    """A record of another kind of group, or bytes that are no record at all; loading goes on."""

    key: bytes
    reason: str


@value
class Encoded:
    """Key and value as they are appended; a tombstone has no value."""

    key: bytes
    value: bytes | None


def encode_record(record: KeptRecord) -> Encoded:
    key, content = encode_pair(record)
    return Encoded(key=key, value=content)


def encode_pair(record: KeptRecord) -> tuple[bytes, bytes | None]:
    """Key and value of a record, as plainly as they can be had: a commit may bring many."""
    match record:
        case OffsetCommitted():
            key = _offset_key(record.group_id, record.topic, record.partition)
            return key, _encode_offset(record)
        case OffsetRemoved():
            return _offset_key(record.group_id, record.topic, record.partition), None
        case GenerationFormed():
            key = stored.encode_key(stored.GroupMetadataKey(group=record.group_id))
            return key, _encode_generation(record)
        case GroupRemoved():
            return stored.encode_key(stored.GroupMetadataKey(group=record.group_id)), None


def encode_offsets(records: Sequence[Record], commit_ms: Millis) -> bytes | None:
    """Offsets committed at one moment as the records of one batch, all in one go.

    None where one of them is not a plain one: those are encoded by themselves.
    """
    end = _PLAIN_END.pack(_EMPTY, commit_ms, 0) + NO_HEADERS
    parts: list[bytes] = []
    for index, record in enumerate(records):
        if (
            not isinstance(record, OffsetCommitted)
            or record.metadata
            or record.commit_ms != commit_ms
            or record.expire_ms is not None
            or record.producer_id is not None
            or record.topic_id != ZERO_UUID
        ):
            return None
        start = _plain_start(record.group_id, record.topic, record.partition, index)
        parts += (start, _pack_numbers(record.offset, record.leader_epoch), end)
    return b"".join(parts)


def encode_columns(record: OffsetsCommitted) -> bytes:
    """The same for offsets told by columns: the bytes between their numbers are worked out once."""
    columns = record.columns
    form: _Form | None = columns.places.form
    if form is None or form.group_id != record.group_id:
        form = columns.places.form = _Form(record.group_id, columns.places)
    parts = form.parts.copy()
    parts[1::4] = columns.offsets
    parts[2::4] = columns.leader_epochs
    parts[3::4] = (_COLUMN_TIME.pack(_EMPTY, record.commit_ms),) * len(columns.offsets)
    return form.pack(*parts)


class _Form:
    """A commit's records with room for its numbers: constant bytes, an offset, its epoch, the time,
    and so on, and the bytes after the last one."""

    __slots__ = ("group_id", "pack", "parts")

    def __init__(self, group_id: GroupId, places: Places) -> None:
        self.group_id = group_id
        pattern, before = ">", b""
        self.parts: list[Any] = []
        named = zip(places.topics, places.partitions, places.topic_ids, strict=True)
        for index, (topic, partition, topic_id) in enumerate(named):
            tags = b"\x00" if topic_id == ZERO_UUID else _TOPIC_ID_TAG + topic_id
            key = _offset_key(group_id, topic, partition)
            size = _COLUMN_BYTES + len(tags)
            between = before + encode_start(key, size, index) + _PLAIN_START.pack(4)
            pattern += f"{len(between)}sqi{_COLUMN_TIME.size}s"
            self.parts += (between, 0, 0, b"")
            before = tags + NO_HEADERS
        self.pack = Struct(f"{pattern}{len(before)}s").pack
        self.parts.append(before)


def decode_record(
    key: bytes | None,
    value: bytes | None,
    producer_id: ProducerId | None = None,
    producer_epoch: ProducerEpoch | None = None,
) -> OneRecord | Skipped:
    """A record as read from the log; the producer is its batch's, where that is transactional."""
    if key is None:
        return Skipped(key=b"", reason="no key")
    try:
        name = _decode_key(key)
        if value is not None and len(value) == _PLAIN_OFFSET.size and type(name) is _OffsetKey:
            version, offset, leader_epoch, metadata, commit_ms, tags = _PLAIN_OFFSET.unpack(value)
            if (version, metadata, tags) == (4, _EMPTY, 0):
                return _make_offset(
                    name.group,
                    name.topic,
                    name.partition,
                    offset,
                    leader_epoch,
                    "",
                    commit_ms,
                    None,
                    ZERO_UUID,
                    producer_id,
                    producer_epoch,
                )
        if not isinstance(name, stored.OffsetCommitKey | stored.GroupMetadataKey):
            return Skipped(key=key, reason=type(name).__name__)
        content = stored.decode_value(name, value)
    except (MalformedMessage, UnsupportedVersion) as error:
        # DEVIATION: Kafka skips kinds it does not know, but gives up loading at damaged ones.
        return Skipped(key=key, reason=str(error))
    if isinstance(name, stored.GroupMetadataKey):
        return GroupRemoved(group_id=name.group) if content is None else _generation(name, content)
    if content is None:
        return OffsetRemoved(group_id=name.group, topic=name.topic, partition=name.partition)
    return _offset(name, content, producer_id, producer_epoch)


def find_subscribed_topics(metadata: Iterable[bytes]) -> frozenset[Topic] | None:
    """The topics that consumers with this metadata read; None where any of it makes no sense."""
    # Version 0 begins every other version: what later ones append cannot spoil the topics.
    read = decoder(Subscription, 0)
    topics: set[Topic] = set()
    try:
        # Most members of a group say the same, byte for byte.
        for each in set(metadata):
            subscription, _ = read(each, _VERSION_SIZE)
            topics.update(subscription.topics)
    except MalformedMessage:
        return None
    return frozenset(topics)


# A group commits the same partitions over and over: their keys are worked out once, both ways.


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _offset_key(group_id: GroupId, topic: Topic, partition: Partition) -> bytes:
    return stored.encode_key(
        stored.OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    )


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _plain_start(group_id: GroupId, topic: Topic, partition: Partition, index: int) -> bytes:
    """All of a record that comes before a plain offset's numbers."""
    key = _offset_key(group_id, topic, partition)
    return encode_start(key, _PLAIN_OFFSET.size, index) + _PLAIN_START.pack(4)


@lru_cache(maxsize=_KEYS_REMEMBERED)
def _decode_key(key: bytes) -> Any:
    return stored.decode_key(key)


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


def _encode_generation(record: GenerationFormed) -> bytes:
    members = [
        _make_stored_member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.subscription,
            member.assignment,
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


def _generation(
    key: stored.GroupMetadataKey, content: stored.GroupMetadataValue
) -> GenerationFormed:
    return GenerationFormed(
        group_id=key.group,
        protocol_type=content.protocol_type,
        generation=Generation(content.generation),
        protocol=content.protocol,
        leader=content.leader,
        state_since_ms=content.current_state_timestamp,
        members=tuple(
            FormedMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Version 0 had no rebalance timeout: the session timeout served as both.
                rebalance_timeout_ms=(
                    member.session_timeout
                    if member.rebalance_timeout == _NONE
                    else member.rebalance_timeout
                ),
                session_timeout_ms=member.session_timeout,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in content.members
        ),
    )


def _offset(
    key: stored.OffsetCommitKey,
    content: stored.OffsetCommitValue,
    producer_id: ProducerId | None,
    producer_epoch: ProducerEpoch | None,
) -> OffsetCommitted:
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
