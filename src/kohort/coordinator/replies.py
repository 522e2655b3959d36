"""Replies to commands. A handler turns each into a response of the client's protocol version."""

from typing import TypeAlias

from kohort.coordinator.commands import (
    NO_MEMBER,
    OffsetColumns,
    OffsetToCommit,
    Ticket,
)
from kohort.coordinator.records import OffsetCommitted
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Offset,
    Partition,
    Topic,
    Uuid,
    value,
)


@value(kw_only=False)
class RequestRefused:
    """The whole request is refused. `member_id` is the id that a refused join should use next."""

    ticket: Ticket
    error: ErrorCode
    member_id: MemberId = NO_MEMBER


@value(kw_only=False)
class JoinedMember:
    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@value(kw_only=False)
class Joined:
    """The member is in this generation; only the leader gets the list of members."""

    ticket: Ticket
    member_id: MemberId
    generation: Generation
    protocol_type: str | None
    protocol: str | None
    leader: MemberId
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@value(kw_only=False)
class Synced:
    ticket: Ticket
    protocol_type: str | None
    protocol: str | None
    assignment: bytes


@value(kw_only=False)
class HeartbeatAccepted:
    ticket: Ticket


@value
class Left:
    member_id: MemberId
    instance_id: InstanceId | None
    error: ErrorCode


@value
class LeaveAnswered:
    ticket: Ticket
    members: tuple[Left, ...]


@value
class PartitionResult:
    topic: Topic
    partition: Partition
    error: ErrorCode
    topic_id: Uuid = ZERO_UUID


@value(kw_only=False)
class CommitAnswered:
    """One error per partition, in the order of the request."""

    ticket: Ticket
    offsets: tuple[OffsetToCommit, ...] | OffsetColumns
    errors: tuple[ErrorCode, ...]

    @property
    def results(self) -> tuple[PartitionResult, ...]:
        return tuple(
            PartitionResult(
                topic=each.topic, partition=each.partition, error=error, topic_id=each.topic_id
            )
            for each, error in zip(self.offsets, self.errors, strict=True)
        )


@value
class TransactionClosed:
    ticket: Ticket


@value(kw_only=False)
class NotFetched:
    """A partition without a committed offset, or with one that is not stable yet."""

    partition: Partition
    error: ErrorCode = ErrorCode.NONE


@value(kw_only=False)
class FetchedTopic:
    """Committed offsets are in the reply as their records, which avoids one value per offset."""

    topic: Topic
    topic_id: Uuid
    offsets: tuple[OffsetCommitted | NotFetched, ...]


@value
class FetchedOffset:
    topic: Topic
    partition: Partition
    offset: Offset
    leader_epoch: int
    metadata: str
    error: ErrorCode = ErrorCode.NONE
    topic_id: Uuid = ZERO_UUID


@value(kw_only=False)
class OffsetsFetched:
    """By topic and partition, in the order of the request; all offsets come in commit order."""

    ticket: Ticket
    group_id: GroupId
    topics: tuple[FetchedTopic, ...]

    @property
    def offsets(self) -> tuple[FetchedOffset, ...]:
        return tuple(_as_fetched(topic, each) for topic in self.topics for each in topic.offsets)


def _as_fetched(topic: FetchedTopic, found: OffsetCommitted | NotFetched) -> FetchedOffset:
    return FetchedOffset(
        topic=topic.topic,
        partition=found.partition,
        offset=found.offset if isinstance(found, OffsetCommitted) else Offset(-1),
        leader_epoch=found.leader_epoch if isinstance(found, OffsetCommitted) else -1,
        metadata=found.metadata if isinstance(found, OffsetCommitted) else "",
        error=found.error if isinstance(found, NotFetched) else ErrorCode.NONE,
        topic_id=topic.topic_id,
    )


@value
class DeleteOffsetsAnswered:
    ticket: Ticket
    results: tuple[PartitionResult, ...]


@value
class MemberDescription:
    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@value
class GroupDescription:
    group_id: GroupId
    error: ErrorCode = ErrorCode.NONE
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[MemberDescription, ...] = ()


@value
class GroupsDescribed:
    ticket: Ticket
    groups: tuple[GroupDescription, ...]


@value
class GroupOverview:
    group_id: GroupId
    protocol_type: str
    state: str
    type: str


@value
class GroupsListed:
    ticket: Ticket
    groups: tuple[GroupOverview, ...]


@value
class GroupResult:
    group_id: GroupId
    error: ErrorCode


@value
class DeleteGroupsAnswered:
    ticket: Ticket
    results: tuple[GroupResult, ...]


Reply: TypeAlias = (
    RequestRefused
    | Joined
    | Synced
    | HeartbeatAccepted
    | LeaveAnswered
    | CommitAnswered
    | TransactionClosed
    | OffsetsFetched
    | DeleteOffsetsAnswered
    | GroupsDescribed
    | GroupsListed
    | DeleteGroupsAnswered
)
