"""Answers to tickets. Each is what the client is told, without its bytes or version."""

from typing import TypeAlias

from kohort.coordinator.commands import (
    NO_GENERATION,
    NO_MEMBER,
    OffsetColumns,
    OffsetToCommit,
    Ticket,
)
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


@value
class Refused:
    """The whole request is turned down. A join also learns the id it is to go on with."""

    ticket: Ticket
    error: ErrorCode
    member_id: MemberId = NO_MEMBER


@value
class JoinedMember:
    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@value
class Joined:
    """A member is in this generation; the leader alone is told who else is."""

    ticket: Ticket
    member_id: MemberId
    generation: Generation = NO_GENERATION
    protocol_type: str | None
    protocol: str | None
    leader: MemberId
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@value
class Synced:
    ticket: Ticket
    protocol_type: str | None
    protocol: str | None
    assignment: bytes


@value
class HeartbeatHeard:
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


@value
class CommitAnswered:
    """Per partition, in the order asked: one bad metadata does not spoil the others."""

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


@value
class FetchedOffset:
    topic: Topic
    partition: Partition
    offset: Offset
    leader_epoch: int
    metadata: str
    error: ErrorCode = ErrorCode.NONE
    topic_id: Uuid = ZERO_UUID


@value
class OffsetsFetched:
    ticket: Ticket
    group_id: GroupId
    offsets: tuple[FetchedOffset, ...]


@value
class DeleteOffsetsAnswered:
    ticket: Ticket
    results: tuple[PartitionResult, ...]


@value
class DescribedMember:
    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@value
class DescribedGroup:
    group_id: GroupId
    error: ErrorCode = ErrorCode.NONE
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


@value
class GroupsDescribed:
    ticket: Ticket
    groups: tuple[DescribedGroup, ...]


@value
class ListedGroup:
    group_id: GroupId
    protocol_type: str
    state: str
    type: str


@value
class GroupsListed:
    ticket: Ticket
    groups: tuple[ListedGroup, ...]


@value
class GroupResult:
    group_id: GroupId
    error: ErrorCode


@value
class DeleteGroupsAnswered:
    ticket: Ticket
    results: tuple[GroupResult, ...]


Reply: TypeAlias = (
    Refused
    | Joined
    | Synced
    | HeartbeatHeard
    | LeaveAnswered
    | CommitAnswered
    | TransactionClosed
    | OffsetsFetched
    | DeleteOffsetsAnswered
    | GroupsDescribed
    | GroupsListed
    | DeleteGroupsAnswered
)
