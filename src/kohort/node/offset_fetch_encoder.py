"""Responses to OffsetFetch: the plain path from messages, and a fast path straight to bytes.

A tool may fetch all offsets of a thousand groups at once. `FastOffsetFetchEncoder` avoids one
message object per partition: for version 8 and later it writes the bytes itself, following the
schema in `wire/api/k09_offset_fetch`. Tests compare both paths.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, Protocol

from kohort.coordinator.records import OffsetCommitted
from kohort.coordinator.replies import FetchedTopic, NotFetched
from kohort.log.limits import LEADER_EPOCH
from kohort.node.response_errors import ERROR_FINDERS
from kohort.types import ErrorCode, GroupId, Offset
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kohort.wire.envelope import encode_response, frame_response
from kohort.wire.varint import UVARINT

_MANY_GROUPS: Final = 8
_TOPIC_IDS: Final = 10
"""The first versions with several groups in a request, and with topic ids."""

_NO_OFFSET: Final = Offset(-1)
_NO_EPOCH: Final = -1
_NO_THROTTLE: Final = bytes(4)
_NO_TAGS: Final = b"\0"
_EMPTY: Final = 1
"""The length of an empty string in flexible versions."""

_pack_numbers: Final = Struct(">iqi").pack
_pack_error_and_no_tags: Final = Struct(">hx").pack
_pack_partition: Final = Struct(">iqiBhx").pack
"""For partitions without metadata and error, the most frequent case."""


class OffsetFetchEncoder(Protocol):
    """Groups are added in the order of the request."""

    @property
    def error(self) -> int:
        """The first error code that was added, else 0."""

    def add_group(
        self, group_id: GroupId, topics: Sequence[FetchedTopic], error: ErrorCode = ErrorCode.NONE
    ) -> None: ...

    def frame(self, correlation_id: int) -> bytes:
        """Raises UnencodableMessage if metadata is too long for an old version."""


def new_offset_fetch_encoder(version: int) -> OffsetFetchEncoder:
    return (
        FastOffsetFetchEncoder(version)
        if version >= _MANY_GROUPS
        else PlainOffsetFetchEncoder(version)
    )


class PlainOffsetFetchEncoder:
    """Builds message objects and encodes them."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._groups: list[OffsetFetchResponseGroup] = []

    @property
    def error(self) -> int:
        return ERROR_FINDERS[OffsetFetchResponse](self._response())

    def add_group(
        self, group_id: GroupId, topics: Sequence[FetchedTopic], error: ErrorCode = ErrorCode.NONE
    ) -> None:
        self._groups.append(
            OffsetFetchResponseGroup(
                group_id=group_id,
                topics=tuple(
                    OffsetFetchResponseTopics(
                        name=topic.topic,
                        topic_id=topic.topic_id,
                        partitions=tuple(map(_partition, topic.offsets)),
                    )
                    for topic in topics
                ),
                error_code=error,
            )
        )

    def frame(self, correlation_id: int) -> bytes:
        return encode_response(self._response(), self._version, correlation_id)

    def _response(self) -> OffsetFetchResponse:
        if self._version >= _MANY_GROUPS:
            return OffsetFetchResponse(groups=tuple(self._groups))
        (group,) = self._groups
        topics = tuple(
            OffsetFetchResponseTopic(
                name=topic.name, partitions=tuple(map(_old_partition, topic.partitions))
            )
            for topic in group.topics
        )
        return OffsetFetchResponse(topics=topics, error_code=group.error_code)


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
        self._errors: list[ErrorCode] = []
        self._groups: list[bytes] = []

    @property
    def error(self) -> int:
        return self._errors[0] if self._errors else 0

    def frame(self, correlation_id: int) -> bytes:
        parts = [_NO_THROTTLE, UVARINT[len(self._groups) + 1], *self._groups, _NO_TAGS]
        return frame_response(OffsetFetchResponse, self._version, correlation_id, parts)

    def add_group(
        self, group_id: GroupId, topics: Sequence[FetchedTopic], error: ErrorCode = ErrorCode.NONE
    ) -> None:
        name = group_id.encode()
        parts = [UVARINT[len(name) + 1], name, UVARINT[len(topics) + 1]]
        for topic in topics:
            self._write_topic(topic, parts)
        parts.append(_pack_error_and_no_tags(error))
        if error:
            self._errors.append(error)
        self._groups.append(b"".join(parts))

    def _write_topic(self, topic: FetchedTopic, parts: list[bytes]) -> None:
        offsets = topic.offsets
        if self._has_topic_ids:
            parts.append(topic.topic_id)
        else:
            name = topic.topic.encode()
            parts += (UVARINT[len(name) + 1], name)
        parts.append(UVARINT[len(offsets) + 1])
        parts += [
            _pack_partition(each.partition, each.offset, each.leader_epoch, _EMPTY, 0)
            if isinstance(each, OffsetCommitted)
            and not each.metadata
            and each.leader_epoch <= LEADER_EPOCH
            else self._encode_partition(each)
            for each in offsets
        ]
        parts.append(_NO_TAGS)

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
