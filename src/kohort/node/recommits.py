"""Commits that differ from an earlier one in their offsets alone, as most of a member's do.

What they share is worked out once per connection: who commits, for which partitions, and the
answer if all goes well. Nothing is decided here. Whatever is not as it was, be it in the frame or
in the topics, goes the handler's general way, and so does every answer that tells an error.
"""

from dataclasses import replace
from typing import Any, Final

from kohort.coordinator.commands import CommitOffsets, OffsetColumns, OffsetToCommit, Places
from kohort.coordinator.replies import CommitAnswered, Reply
from kohort.node.request import Ready, Request
from kohort.node.topics import Named, Topics
from kohort.types import ErrorCode, Offset, maker
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
)
from kohort.wire.envelope import encode_request
from kohort.wire.header import RequestHeader
from kohort.wire.layout import Layout

_KNOWS_LEADER_EPOCH: Final = 6
"""The first version in which a leader epoch follows each offset."""

_MISSES_MAX: Final = 8
"""In a row, until what is known is given up. To find it out takes as long as some commits."""

_make_columns: Final = maker(OffsetColumns)


class Once:
    """A commit that came once. Only if the next one is like it, there is something to be known."""

    __slots__ = ("_body", "header")

    def __init__(self, request: Request) -> None:
        self.header = request.header
        self._body: OffsetCommitRequest = request.body

    def read(self, frame: bytes) -> None:  # noqa: ARG002  # it has not seen enough to tell
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
            and _asked(earlier) == _asked(body)
        )


class Recommit:
    """A body of which all but the numbers is known."""

    __slots__ = ("known", "numbers")

    def __init__(self, known: "Commits", numbers: tuple[int, ...]) -> None:
        self.known = known
        self.numbers = numbers


class Commits:
    """All that a connection's commits have in common."""

    def __init__(
        self,
        request: Request,
        named: list[Named],
        command: CommitOffsets,
        answer: OffsetCommitResponse,
        topics: Topics,
    ) -> None:
        """From a commit of which every partition exists; `answer` is the one without an error."""
        self.header = request.header
        self.body: OffsetCommitRequest = request.body
        self.named = named
        self.command = command
        self._topics = topics
        self._kept = [(each.name, topics.find(each.name)) for each in named]
        self._metadata = [each.metadata for each in command.offsets]
        self._places = Places(
            tuple(each.topic for each in command.offsets),
            tuple(each.partition for each in command.offsets),
            tuple(each.topic_id for each in command.offsets),
        )
        self._no_epochs = (-1,) * len(command.offsets)
        self._no_errors = (ErrorCode.NONE,) * len(command.offsets)
        self._ready = Ready(answer, request.version)
        self._has_epochs = request.version >= _KNOWS_LEADER_EPOCH
        letters = "qi" if self._has_epochs else "q"
        self._layout = Layout(_frame(request, 0), _frame(request, -1), letters)
        self._misses = 0

    def read(self, frame: bytes) -> Recommit | None:
        numbers = self._layout.find_numbers(frame)
        if numbers is None:
            return None
        for name, kept in self._kept:
            if self._topics.find(name) is not kept:
                return None
        self._misses = 0
        return Recommit(self, numbers)

    def is_worth_keeping(self) -> bool:
        """Asked when another commit has come: one exception is no reason to begin anew."""
        self._misses += 1
        return self._misses < _MISSES_MAX

    def offsets(self, numbers: tuple[int, ...]) -> tuple[OffsetToCommit, ...] | OffsetColumns:
        """What the general way would have read."""
        offsets: Any = numbers
        epochs = self._no_epochs
        if self._has_epochs:
            offsets, epochs = numbers[::2], numbers[1::2]
        columns = _make_columns(self._places, offsets, epochs)
        if not any(self._metadata):
            return columns
        return tuple(map(_with_metadata, columns, self._metadata))

    def find_answer(self, reply: Reply) -> Ready | None:
        """The answer to a commit of which everything is kept."""
        is_kept = isinstance(reply, CommitAnswered) and reply.errors == self._no_errors
        return self._ready if is_kept else None


def _with_metadata(offset: OffsetToCommit, metadata: str | None) -> OffsetToCommit:
    return replace(offset, metadata=metadata)


def _asked(body: OffsetCommitRequest) -> list[object]:
    return [
        (
            topic.name,
            topic.topic_id,
            [(each.partition_index, each.committed_metadata) for each in topic.partitions],
        )
        for topic in body.topics
    ]


def _frame(request: Request, number: int) -> bytes:
    """The frame with one number in place of all."""

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
