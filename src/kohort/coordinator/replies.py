"""Answers to tickets. Each is what the client is told, without its bytes or version."""

from typing import TypeAlias

from kohort.coordinator.commands import (
    NO_GENERATION,
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
class NotFetched:
    """A partition of which nothing is committed, or nothing that may be told yet."""

    partition: Partition
    error: ErrorCode = ErrorCode.NONE


@value
class FetchedTopic:
    """Kept records tell of themselves: nothing is made for those, however many they are."""

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


@value
class OffsetsFetched:
    """By topics and partitions, in the order asked, or where all were asked for, as kept."""

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
