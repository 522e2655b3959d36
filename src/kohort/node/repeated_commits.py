"""Fast path for commits that differ from an earlier commit of their connection only in numbers.

The first commits of a connection take the plain path in `handlers.k08_offset_commit`. The second of
a kind becomes a `RepeatedCommits`: the command, the partitions and the successful response are made
once. Later frames are recognised by `CommitFrame` without decoding, and become columnar commits
(`OffsetColumns`). Any other frame, a changed topic and every error take the plain path.
"""

import struct
from dataclasses import replace
from typing import Any, Final

from kohort.coordinator.commands import (
    CommitOffsets,
    OffsetColumns,
    OffsetToCommit,
    PartitionColumns,
)
from kohort.coordinator.replies import CommitAnswered, Reply
from kohort.node.request import PreparedResponse, Request
from kohort.node.topics import ResolvedTopic, Topics
from kohort.types import ErrorCode, Offset
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
)
from kohort.wire.envelope import encode_request
from kohort.wire.header import RequestHeader

_CORRELATION_ID: Final = slice(4, 8)
"""Its position in a frame. It differs in every frame, but is not a number of the commit."""

_KNOWS_LEADER_EPOCH: Final = 6
"""The first version in which a leader epoch follows each offset."""

_MISSES_MAX: Final = 8
"""Consecutive commits that were not recognised; then the template is dropped."""


class CommitFrame:
    """Where the numbers of a commit's frame are. Frames that differ in nothing else are recognised.

    What a decoder makes of the other bytes does not depend on the numbers, whose size is constant.
    """

    __slots__ = ("_expected", "_mask", "_size", "_unpack")

    def __init__(self, low: bytes, high: bytes, letters: str) -> None:
        """From two frames of the same request, without their length: all numbers are 0 in one and
        -1 in the other. `letters` is the struct format of one partition's numbers."""
        assert len(low) == len(high), "the size of a number depends on its value"
        size = len(low)
        differs = (int.from_bytes(low) ^ int.from_bytes(high)).to_bytes(size)
        width = struct.calcsize(">" + letters)
        pattern, position = ">", 0
        while (start := differs.find(0xFF, position)) >= 0:
            stop = start + width
            assert differs[start:stop] == b"\xff" * width, f"no {letters} at byte {start}"
            pattern += f"{start - position}x{letters}"
            position = stop
        mask = bytearray(byte ^ 0xFF for byte in differs)
        mask[_CORRELATION_ID] = bytes(4)
        self._size = size
        self._mask = int.from_bytes(mask)
        self._expected = int.from_bytes(low) & self._mask
        self._unpack = struct.Struct(f"{pattern}{size - position}x").unpack

    def find_numbers(self, frame: bytes) -> tuple[int, ...] | None:
        """The numbers of all partitions in order; None if the frame differs in more than those."""
        if len(frame) != self._size or int.from_bytes(frame) & self._mask != self._expected:
            return None
        return self._unpack(frame)


class FirstCommit:
    """The first commit of a kind. If the next one is like it, they become `RepeatedCommits`."""

    __slots__ = ("_body", "header")

    def __init__(self, request: Request) -> None:
        self.header = request.header
        self._body: OffsetCommitRequest = request.body

    def read(self, frame: bytes) -> None:  # noqa: ARG002  # one commit does not show what repeats
        return None

    def is_like(self, header: RequestHeader, body: OffsetCommitRequest) -> bool:
        ours, earlier = self.header, self._body
        return (
            earlier.member_id == body.member_id
            and earlier.generation_id_or_member_epoch == body.generation_id_or_member_epoch
            and earlier.group_id == body.group_id
            and earlier.group_instance_id == body.group_instance_id
            and earlier.retention_time_ms == body.retention_time_ms
            and ours.request_api_version == header.request_api_version
            and ours.client_id == header.client_id
            and _requested_partitions(earlier) == _requested_partitions(body)
        )


class RepeatedCommit:
    """The body of a recognised commit: its numbers and its template."""

    __slots__ = ("numbers", "template")

    def __init__(self, template: "RepeatedCommits", numbers: tuple[int, ...]) -> None:
        self.template = template
        self.numbers = numbers


class RepeatedCommits:
    """The template of a connection's commits: what they have in common."""

    def __init__(
        self,
        request: Request,
        resolved: list[ResolvedTopic],
        command: CommitOffsets,
        success: OffsetCommitResponse,
        topics: Topics,
    ) -> None:
        """Every partition of the request exists; `success` is the response without an error."""
        self.header = request.header
        self.body: OffsetCommitRequest = request.body
        self.resolved = resolved
        self.command = command
        self._topics = topics
        self._catalog_topics = [(each.name, topics.find(each.name)) for each in resolved]
        self._metadata = [each.metadata for each in command.offsets]
        self._partition_columns = PartitionColumns(
            tuple(each.topic for each in command.offsets),
            tuple(each.partition for each in command.offsets),
            tuple(each.topic_id for each in command.offsets),
        )
        self._no_epochs = (-1,) * len(command.offsets)
        self._no_errors = (ErrorCode.NONE,) * len(command.offsets)
        self._success = PreparedResponse(success, request.version)
        self._has_epochs = request.version >= _KNOWS_LEADER_EPOCH
        letters = "qi" if self._has_epochs else "q"
        self._frame = CommitFrame(_frame(request, 0), _frame(request, -1), letters)
        self._misses = 0

    def read(self, frame: bytes) -> RepeatedCommit | None:
        numbers = self._frame.find_numbers(frame)
        if numbers is None:
            return None
        for name, topic in self._catalog_topics:
            if self._topics.find(name) is not topic:
                return None
        self._misses = 0
        return RepeatedCommit(self, numbers)

    def is_worth_keeping(self) -> bool:
        """Called when a commit was not recognised. A single miss does not drop the template."""
        self._misses += 1
        return self._misses < _MISSES_MAX

    def offsets(self, numbers: tuple[int, ...]) -> tuple[OffsetToCommit, ...] | OffsetColumns:
        """Return the offsets as the plain path would decode them."""
        offsets: Any = numbers
        epochs = self._no_epochs
        if self._has_epochs:
            offsets, epochs = numbers[::2], numbers[1::2]
        columns = OffsetColumns(self._partition_columns, offsets, epochs)
        if not any(self._metadata):
            return columns
        return tuple(map(_with_metadata, columns, self._metadata))

    def find_response(self, reply: Reply) -> PreparedResponse | None:
        """The prepared response, if every offset was committed."""
        is_committed = isinstance(reply, CommitAnswered) and reply.errors == self._no_errors
        return self._success if is_committed else None


def _with_metadata(offset: OffsetToCommit, metadata: str | None) -> OffsetToCommit:
    return replace(offset, metadata=metadata)


def _requested_partitions(body: OffsetCommitRequest) -> list[object]:
    return [
        (
            topic.name,
            topic.topic_id,
            [(each.partition_index, each.committed_metadata) for each in topic.partitions],
        )
        for topic in body.topics
    ]


def _frame(request: Request, number: int) -> bytes:
    """The frame of a request with all its numbers replaced by one."""

    def numbered(partition: OffsetCommitRequestPartition) -> OffsetCommitRequestPartition:
        return replace(partition, committed_offset=Offset(number), committed_leader_epoch=number)

    body: OffsetCommitRequest = request.body
    topics = tuple(
        replace(topic, partitions=tuple(map(numbered, topic.partitions))) for topic in body.topics
    )
    header = request.header
    frame = encode_request(
        replace(body, topics=topics), header.request_api_version, 0, header.client_id
    )
    return frame[4:]
