"""The answer to an OffsetFetch, written straight from the records that the coordinator keeps.

A tool asks for all offsets of a thousand groups at once, and values made of them would be made
only to be encoded. So this file knows the bytes of `wire/api/k09_offset_fetch` in every version,
and tests hold it to what is encoded from the declarations there. It decides nothing.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812  # it is a class
from typing import Final

from kohort.coordinator.records import OffsetCommitted
from kohort.coordinator.replies import FetchedTopic, NotFetched
from kohort.log.limits import LEADER_EPOCH
from kohort.types import ErrorCode, GroupId
from kohort.wire.api.k09_offset_fetch import OffsetFetchResponse
from kohort.wire.envelope import frame_response
from kohort.wire.errors import UnencodableMessage
from kohort.wire.varint import UVARINT

# What versions brought.
_ERROR: Final = 2
_THROTTLE: Final = 3
_EPOCH: Final = 5
_FLEXIBLE: Final = 6
_GROUPS: Final = 8
_TOPIC_IDS: Final = 10

_NO_OFFSET: Final = -1
_NO_EPOCH: Final = -1
_NO_ERROR: Final = 0
_NO_THROTTLE: Final = bytes(4)
_NO_TAGS: Final = b"\0"
_EMPTY: Final = 1
"""The length of an empty string in flexible versions."""

_pack_int16: Final = Struct(">h").pack
_pack_int32: Final = Struct(">i").pack
_pack_int64: Final = Struct(">q").pack
_pack_error_and_no_tags: Final = Struct(">hx").pack
_pack_partition: Final = Struct(">iqiBhx").pack
"""A partition without metadata, in flexible versions. Such are most, and this is all of one."""


class OffsetAnswer:
    """Groups are written one after the other, in the order they were asked for."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._is_flexible = version >= _FLEXIBLE
        self._errors: list[ErrorCode] = []
        self._groups: list[bytes] = []

    @property
    def error(self) -> int:
        """The first that was written, else 0."""
        return self._errors[0] if self._errors else _NO_ERROR

    def frame(self, correlation_id: int) -> bytes:
        parts = [_NO_THROTTLE] if self._version >= _THROTTLE else []
        if self._version >= _GROUPS:
            parts.append(UVARINT[len(self._groups) + 1])
        parts += self._groups
        if self._version >= _GROUPS:
            parts.append(_NO_TAGS)
        return frame_response(OffsetFetchResponse, self._version, correlation_id, parts)

    def add_group(
        self,
        group_id: GroupId,
        topics: Sequence[FetchedTopic],
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """UnencodableMessage where metadata is too long for an old version."""
        parts: list[bytes] = []
        if not self._is_flexible:
            self._write_old_topics(topics, parts)
            if self._version >= _ERROR:
                parts.append(_pack_int16(error))
        else:
            if self._version >= _GROUPS:
                name = group_id.encode()
                parts += (UVARINT[len(name) + 1], name)
            self._write_topics(topics, parts)
            parts.append(_pack_error_and_no_tags(error))
        if error:
            self._errors.append(error)
        self._groups.append(b"".join(parts))

    # Flexible versions

    def _write_topics(self, topics: Sequence[FetchedTopic], parts: list[bytes]) -> None:
        parts.append(UVARINT[len(topics) + 1])
        for topic in topics:
            offsets = topic.offsets
            if self._version >= _TOPIC_IDS:
                parts += (topic.topic_id, UVARINT[len(offsets) + 1])
            else:
                name = topic.topic.encode()
                parts += (UVARINT[len(name) + 1], name, UVARINT[len(offsets) + 1])
            parts += [
                _pack_partition(each.partition, each.offset, each.leader_epoch, _EMPTY, _NO_ERROR)
                if isinstance(each, OffsetCommitted)
                and not each.metadata
                and each.leader_epoch <= LEADER_EPOCH
                else self._write_unusual(each)
                for each in offsets
            ]
            parts.append(_NO_TAGS)

    def _write_unusual(self, each: OffsetCommitted | NotFetched) -> bytes:
        offset, epoch, metadata, error = self._look_at(each)
        content = metadata.encode()
        return b"".join(
            (
                _pack_int32(each.partition),
                _pack_int64(offset),
                _pack_int32(epoch),
                UVARINT[len(content) + 1],
                content,
                _pack_int16(error),
                _NO_TAGS,
            )
        )

    # Older ones

    def _write_old_topics(self, topics: Sequence[FetchedTopic], parts: list[bytes]) -> None:
        parts.append(_pack_int32(len(topics)))
        for topic in topics:
            parts += (self._old_string(topic.topic, "name"), _pack_int32(len(topic.offsets)))
            for each in topic.offsets:
                offset, epoch, metadata, error = self._look_at(each)
                parts += (_pack_int32(each.partition), _pack_int64(offset))
                if self._version >= _EPOCH:
                    parts.append(_pack_int32(epoch))
                parts += (self._old_string(metadata, "metadata"), _pack_int16(error))

    def _old_string(self, text: str, field: str) -> bytes:
        content = text.encode()
        try:
            return _pack_int16(len(content)) + content
        except StructError:
            title, reason = f"OffsetFetchResponse v{self._version}", f"{len(content)} bytes"
            raise UnencodableMessage(title, field, f"{reason} do not fit") from None

    # All

    def _look_at(self, each: OffsetCommitted | NotFetched) -> tuple[int, int, str, int]:
        """Its offset, epoch, metadata and error."""
        if isinstance(each, NotFetched):
            if each.error:
                self._errors.append(each.error)
            return _NO_OFFSET, _NO_EPOCH, "", each.error
        # DEVIATION: Kafka tells any epoch that was committed. One that no leader here has had came
        # from another Kafka with the offset, and a Java consumer would wait for such a leader for
        # ever.
        epoch = each.leader_epoch if each.leader_epoch <= LEADER_EPOCH else _NO_EPOCH
        return each.offset, epoch, each.metadata, _NO_ERROR
