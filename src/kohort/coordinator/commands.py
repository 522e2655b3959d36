"""The commands of the coordinator.

A command contains all its input, so that deciding it needs neither a clock nor random numbers.

A command that expects a reply carries a ticket; the reply may be in its own outcome or in that of a
later command. Flags say what the protocol version of the client supports, so that no version number
reaches the coordinator.

The records of a deferrable outcome (`Outcome.is_deferrable`) may be appended and applied later,
together with those of other deferrable outcomes and in their order. They must be applied before any
other record is appended, and before any command that reads the state they change is decided: these
commands have `sees_deferred = True`.
"""

from collections.abc import Iterator
from typing import ClassVar, NewType, TypeAlias

from kohort.coordinator.outcome import TimerKey
from kohort.types import (
    ZERO_UUID,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
    value,
)

Ticket = NewType("Ticket", int)
"""Identifies a request that waits for its reply. The runtime issues it."""

NO_MEMBER = MemberId("")
NO_GENERATION = Generation(-1)


@value(kw_only=False)
class Protocol:
    """One assignment protocol that a member supports, with its metadata."""

    name: str
    metadata: bytes


@value
class JoinGroup:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_id: GroupId
    member_id: MemberId = NO_MEMBER
    fresh_member_id: MemberId
    """The id for a member that has none yet; the caller draws its random part."""
    instance_id: InstanceId | None = None
    client_id: str
    client_host: str
    session_timeout_ms: Millis
    rebalance_timeout_ms: Millis
    protocol_type: str
    protocols: tuple[Protocol, ...]
    reason: str | None = None
    knows_member_id_required: bool = True
    knows_skip_assignment: bool = True


@value(kw_only=False)
class MemberAssignment:
    member_id: MemberId
    assignment: bytes


@value
class SyncGroup:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_id: GroupId
    member_id: MemberId
    instance_id: InstanceId | None = None
    generation: Generation
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[MemberAssignment, ...] = ()


@value
class Heartbeat:
    sees_deferred: ClassVar[bool] = False

    ticket: Ticket
    group_id: GroupId
    member_id: MemberId
    instance_id: InstanceId | None = None
    generation: Generation


@value
class LeavingMember:
    """A member id, or an instance id alone when an administrator removes a static member."""

    member_id: MemberId = NO_MEMBER
    instance_id: InstanceId | None = None
    reason: str | None = None


@value
class LeaveGroup:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_id: GroupId
    members: tuple[LeavingMember, ...]


@value(kw_only=False)
class OffsetToCommit:
    topic: Topic
    partition: Partition
    offset: Offset
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: Uuid = ZERO_UUID


class PartitionColumns:
    """The partitions of a commit, in request order. Commits of the same partitions share one.

    It is compared by identity, and may be the key of a cache with weak references.
    """

    __slots__ = ("__weakref__", "partitions", "topic_ids", "topics")

    def __init__(
        self,
        topics: tuple[Topic, ...],
        partitions: tuple[Partition, ...],
        topic_ids: tuple[Uuid, ...],
    ) -> None:
        self.topics = topics
        self.partitions = partitions
        self.topic_ids = topic_ids


@value(kw_only=False)
class OffsetColumns:
    """Offsets to commit without metadata, as columns.

    A member commits the same partitions repeatedly, so only the numbers are new.
    """

    partition_columns: PartitionColumns
    offsets: tuple[Offset, ...]
    leader_epochs: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[OffsetToCommit]:
        partition_columns = self.partition_columns
        for topic, partition, offset, leader_epoch, topic_id in zip(
            partition_columns.topics,
            partition_columns.partitions,
            self.offsets,
            self.leader_epochs,
            partition_columns.topic_ids,
            strict=True,
        ):
            yield OffsetToCommit(
                topic=topic,
                partition=partition,
                offset=offset,
                leader_epoch=leader_epoch,
                topic_id=topic_id,
            )


@value(kw_only=False)
class CommitOffsets:
    sees_deferred: ClassVar[bool] = False

    ticket: Ticket
    group_id: GroupId
    offsets: tuple[OffsetToCommit, ...] | OffsetColumns
    member_id: MemberId = NO_MEMBER
    instance_id: InstanceId | None = None
    generation: Generation = NO_GENERATION
    retention_ms: Millis | None = None
    """How long to retain these offsets; only old clients send it."""
    knows_missing_group: bool = True


@value
class CommitTransactionOffsets:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_id: GroupId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    member_id: MemberId = NO_MEMBER
    instance_id: InstanceId | None = None
    generation: Generation = NO_GENERATION
    offsets: tuple[OffsetToCommit, ...]
    knows_loading: bool = True


@value
class EndTransaction:
    """A transaction ended: the producer's pending offsets are committed or dropped."""

    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    producer_id: ProducerId
    is_commit: bool


@value(kw_only=False)
class RequestedTopic:
    topic: Topic
    partitions: tuple[Partition, ...]
    topic_id: Uuid = ZERO_UUID


@value(kw_only=False)
class FetchOffsets:
    """Fetch offsets of one group; `topics=None` fetches all that it has committed."""

    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_id: GroupId
    topics: tuple[RequestedTopic, ...] | None = None
    require_stable: bool = False


@value
class FetchManyOffsets:
    """Fetch offsets of many groups, each with its own ticket and reply."""

    sees_deferred: ClassVar[bool] = True

    fetches: tuple[FetchOffsets, ...]


@value
class DeleteOffsets:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_id: GroupId
    topics: tuple[RequestedTopic, ...]


@value
class DescribeGroups:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_ids: tuple[GroupId, ...]
    knows_missing_group: bool = True


@value
class ListGroups:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@value
class DeleteGroups:
    sees_deferred: ClassVar[bool] = True

    ticket: Ticket
    group_ids: tuple[GroupId, ...]
    removes_members: bool = False
    """Whether groups with members are deleted too; no client of Kafka's protocol can do that."""


@value
class PresentTopic:
    topic: Topic
    topic_id: Uuid
    partition_count: int


@value
class DeletedTopic:
    topic: Topic
    topic_id: Uuid = ZERO_UUID


@value
class TopicsChanged:
    """The topics of the node changed. The offsets of deleted topics are removed.

    A topic that was deleted and created again is in `deleted` with its old id and in `created` with
    its new one. `changed` has the topics that got more partitions.
    """

    sees_deferred: ClassVar[bool] = True

    created: tuple[PresentTopic, ...] = ()
    changed: tuple[PresentTopic, ...] = ()
    deleted: tuple[DeletedTopic, ...] = ()


@value
class TimerFired:
    sees_deferred: ClassVar[bool] = True

    key: TimerKey


@value
class RebalanceGroup:
    """Begin a rebalance that no member has asked for. Kafka has no such request; tests use it."""

    sees_deferred: ClassVar[bool] = True

    group_id: GroupId


@value
class Shutdown:
    """This node stops coordinating: refuse all parked requests with NOT_COORDINATOR."""

    sees_deferred: ClassVar[bool] = True


Request: TypeAlias = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | CommitOffsets
    | CommitTransactionOffsets
    | EndTransaction
    | FetchOffsets
    | DeleteOffsets
    | DescribeGroups
    | ListGroups
    | DeleteGroups
)
"""Commands that carry a ticket."""

Command: TypeAlias = (
    Request | FetchManyOffsets | TopicsChanged | TimerFired | RebalanceGroup | Shutdown
)
