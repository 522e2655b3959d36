"""Responses to OffsetFetch: the plain path from messages, and a fast path straight to bytes.

A tool may fetch all offsets of a thousand groups at once. `FastOffsetFetchEncoder` avoids one
message object per partition: for version 8 and later it writes the bytes itself, following the
schema in `wire/api/k09_offset_fetch`. Tests compare both paths.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, Protocol, TypeVar

from kohort.coordinator.records import OffsetCommitted
from kohort.coordinator.replies import FetchedTopic, NotFetched
from kohort.log.limits import LEADER_EPOCH
from kohort.node.request import NAMED_PER_SLICE, RESPONSE_BYTES_MAX, EncodedResponse
from kohort.types import ErrorCode, GroupId, Offset
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kohort.wire.envelope import frame_response
from kohort.wire.errors import UnencodableMessage
from kohort.wire.varint import UVARINT

T = TypeVar("T")

_MANY_GROUPS: Final = 8
_TOPIC_IDS: Final = 10
"""The first versions with several groups in a request, and with topic ids."""

_NO_OFFSET: Final = Offset(-1)
_NO_EPOCH: Final = -1
_NO_THROTTLE: Final = bytes(4)
_NO_TAGS: Final = b"\0"
_EMPTY: Final = 1
"""The length of an empty string in flexible versions."""

_PARTITION_BYTES: Final = 20
"""The size of a partition without metadata, about."""

_pack_numbers: Final = Struct(">iqi").pack
_pack_error_and_no_tags: Final = Struct(">hx").pack
_pack_partition: Final = Struct(">iqiBhx").pack
"""For partitions without metadata and error, the most frequent case."""


class OffsetFetchEncoder(Protocol):
    """Groups are added in the order of the request."""

    def add_group(
        self, group_id: GroupId, topics: Sequence[FetchedTopic], error: ErrorCode = ErrorCode.NONE
    ) -> Iterator[None]:
        """Yields between slices of many offsets. Raises UnencodableMessage if the response becomes
        too large."""

    def finish(self, correlation_id: int) -> EncodedResponse | OffsetFetchResponse: ...


def new_offset_fetch_encoder(version: int) -> OffsetFetchEncoder:
    return (
        FastOffsetFetchEncoder(version)
        if version >= _MANY_GROUPS
        else PlainOffsetFetchEncoder(version)
    )


class _Budget:
    """Counts the bytes of a response, and the offsets of a slice."""

    __slots__ = ("_bytes_left", "_offsets_left")

    def __init__(self) -> None:
        self._bytes_left = RESPONSE_BYTES_MAX
        self._offsets_left = NAMED_PER_SLICE

    def spend(self, size: int, count: int) -> bool:
        """Return whether the slice is finished."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            reason = f"it has more than {RESPONSE_BYTES_MAX} bytes"
            raise UnencodableMessage("OffsetFetchResponse", "length", reason)
        self._offsets_left -= count
        if self._offsets_left > 0:
            return False
        self._offsets_left = NAMED_PER_SLICE
        return True


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    if len(items) <= NAMED_PER_SLICE:
        yield items
        return
    for first in range(0, len(items), NAMED_PER_SLICE):
        yield items[first : first + NAMED_PER_SLICE]


class PlainOffsetFetchEncoder:
    """Builds message objects."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._budget = _Budget()
        self._groups: list[OffsetFetchResponseGroup] = []
        self._topics: list[OffsetFetchResponseTopic] = []
        """The topics of the only group, before version 8."""

    def add_group(
        self, group_id: GroupId, topics: Sequence[FetchedTopic], error: ErrorCode = ErrorCode.NONE
    ) -> Iterator[None]:
        found = []
        for topic in topics:
            partitions: list[OffsetFetchResponsePartitions] = []
            for chunk in _chunks(topic.offsets):
                described = [_partition(each) for each in chunk]
                size = sum(_PARTITION_BYTES + len(each.metadata or "") for each in described)
                partitions += described
                if self._budget.spend(size, 1 + len(chunk)):
                    yield
            found.append(
                OffsetFetchResponseTopics(
                    name=topic.topic, topic_id=topic.topic_id, partitions=tuple(partitions)
                )
            )
        self._groups.append(
            OffsetFetchResponseGroup(group_id=group_id, topics=tuple(found), error_code=error)
        )
        if self._version < _MANY_GROUPS:
            yield from self._add_old_topics(found)

    def _add_old_topics(self, found: list[OffsetFetchResponseTopics]) -> Iterator[None]:
        for topic in found:
            partitions: list[OffsetFetchResponsePartition] = []
            for chunk in _chunks(topic.partitions):
                partitions += [_old_partition(each) for each in chunk]
                if self._budget.spend(0, 1 + len(chunk)):
                    yield
            self._topics.append(
                OffsetFetchResponseTopic(name=topic.name, partitions=tuple(partitions))
            )

    def finish(self, _: int) -> OffsetFetchResponse:
        if self._version >= _MANY_GROUPS:
            return OffsetFetchResponse(groups=tuple(self._groups))
        (group,) = self._groups
        return OffsetFetchResponse(topics=tuple(self._topics), error_code=group.error_code)


def _partition(each: OffsetCommitted | NotFetched) -> OffsetFetchResponsePartitions:
    offset, epoch, metadata, error = _fields(each)
    return OffsetFetchResponsePartitions(
        partition_index=each.partition,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        metadata=metadata,
        error_code=error,
    )


def _old_partition(each: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=each.partition_index,
        committed_offset=each.committed_offset,
        committed_leader_epoch=each.committed_leader_epoch,
        metadata=each.metadata,
        error_code=each.error_code,
    )


class FastOffsetFetchEncoder:
    """Writes the bytes of versions 8 and later."""

    def __init__(self, version: int) -> None:
        self._has_topic_ids = version >= _TOPIC_IDS
        self._version = version
        self._budget = _Budget()
        self._errors: list[ErrorCode] = []
        self._groups: list[bytes] = []

    def finish(self, correlation_id: int) -> EncodedResponse:
        parts = [_NO_THROTTLE, UVARINT[len(self._groups) + 1], *self._groups, _NO_TAGS]
        payload = frame_response(OffsetFetchResponse, self._version, correlation_id, parts)
        return EncodedResponse(payload, self._errors[0] if self._errors else 0)

    def add_group(
        self, group_id: GroupId, topics: Sequence[FetchedTopic], error: ErrorCode = ErrorCode.NONE
    ) -> Iterator[None]:
        name = group_id.encode()
        parts = [UVARINT[len(name) + 1], name, UVARINT[len(topics) + 1]]
        for topic in topics:
            self._begin_topic(topic, parts)
            for chunk in _chunks(topic.offsets):
                encoded = b"".join(self._encode_partitions(chunk))
                parts.append(encoded)
                if self._budget.spend(len(encoded), 1 + len(chunk)):
                    yield
            parts.append(_NO_TAGS)
        parts.append(_pack_error_and_no_tags(error))
        if error:
            self._errors.append(error)
        self._groups.append(b"".join(parts))
        if self._budget.spend(0, 1):
            yield

    def _begin_topic(self, topic: FetchedTopic, parts: list[bytes]) -> None:
        if self._has_topic_ids:
            parts.append(topic.topic_id)
        else:
            name = topic.topic.encode()
            parts += (UVARINT[len(name) + 1], name)
        parts.append(UVARINT[len(topic.offsets) + 1])

    def _encode_partitions(self, offsets: Sequence[OffsetCommitted | NotFetched]) -> list[bytes]:
        return [
            _pack_partition(each.partition, each.offset, each.leader_epoch, _EMPTY, 0)
            if isinstance(each, OffsetCommitted)
            and not each.metadata
            and each.leader_epoch <= LEADER_EPOCH
            else self._encode_partition(each)
            for each in offsets
        ]

    def _encode_partition(self, each: OffsetCommitted | NotFetched) -> bytes:
        offset, epoch, metadata, error = _fields(each)
        if error:
            self._errors.append(error)
        content = metadata.encode()
        numbers = _pack_numbers(each.partition, offset, epoch)
        return b"".join(
            (numbers, UVARINT[len(content) + 1], content, _pack_error_and_no_tags(error))
        )


def _fields(each: OffsetCommitted | NotFetched) -> tuple[Offset, int, str, ErrorCode]:
    """Offset, leader epoch, metadata and error of a partition."""
    if isinstance(each, NotFetched):
        return _NO_OFFSET, _NO_EPOCH, "", each.error
    # DEVIATION: Kafka returns any committed leader epoch. An epoch above ours was imported from
    # another cluster, and a Java consumer would wait forever for a leader with that epoch.
    epoch = each.leader_epoch if each.leader_epoch <= LEADER_EPOCH else _NO_EPOCH
    return each.offset, epoch, each.metadata, ErrorCode.NONE
