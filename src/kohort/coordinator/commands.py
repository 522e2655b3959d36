"""What the coordinator can be asked. A command is complete: no clock and no die is needed.

A command that expects an answer carries a ticket; the answer may leave at once or in the outcome
of another command. Flags say what the asking client's protocol version knows, so that no version
number reaches the machine.
"""

from collections.abc import Iterator
from typing import Any, NewType, TypeAlias

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
"""Names a request that waits for its answer. Whoever gave it out knows whom to tell."""

NO_MEMBER = MemberId("")
NO_GENERATION = Generation(-1)


@value
class Protocol:
    """One assignment protocol a member offers, with what it has to say under it."""

    name: str
    metadata: bytes


@value
class JoinGroup:
    ticket: Ticket
    group_id: GroupId
    member_id: MemberId = NO_MEMBER
    fresh_member_id: MemberId
    """The id to give if the member has none yet: chance happens outside the machine."""
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


@value
class MemberAssignment:
    member_id: MemberId
    assignment: bytes


@value
class SyncGroup:
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
    ticket: Ticket
    group_id: GroupId
    member_id: MemberId
    instance_id: InstanceId | None = None
    generation: Generation


@value
class Leaver:
    """Who is to leave: by member id, or by instance id alone when an administrator removes it."""

    member_id: MemberId = NO_MEMBER
    instance_id: InstanceId | None = None
    reason: str | None = None


@value
class LeaveGroup:
    ticket: Ticket
    group_id: GroupId
    leavers: tuple[Leaver, ...]


@value
class OffsetToCommit:
    topic: Topic
    partition: Partition
    offset: Offset
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: Uuid = ZERO_UUID


class Places:
    """The partitions of a commit, in its order: made once for all commits of the same ones."""

    __slots__ = ("form", "partitions", "topic_ids", "topics")

    def __init__(
        self,
        topics: tuple[Topic, ...],
        partitions: tuple[Partition, ...],
        topic_ids: tuple[Uuid, ...],
    ) -> None:
        self.topics = topics
        self.partitions = partitions
        self.topic_ids = topic_ids
        self.form: Any = None
        """What the codec has worked out about them; kept here, so that it goes when they go."""


@value
class OffsetColumns:
    """Offsets to commit without metadata, told by columns: of those that a member commits over and
    over only the numbers are new."""

    places: Places
    offsets: tuple[Offset, ...]
    leader_epochs: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[OffsetToCommit]:
        places = self.places
        for topic, partition, offset, leader_epoch, topic_id in zip(
            places.topics,
            places.partitions,
            self.offsets,
            self.leader_epochs,
            places.topic_ids,
            strict=True,
        ):
            yield OffsetToCommit(
                topic=topic,
                partition=partition,
                offset=offset,
                leader_epoch=leader_epoch,
                topic_id=topic_id,
            )


@value
class CommitOffsets:
    ticket: Ticket
    group_id: GroupId
    member_id: MemberId = NO_MEMBER
    instance_id: InstanceId | None = None
    generation: Generation = NO_GENERATION
    offsets: tuple[OffsetToCommit, ...] | OffsetColumns
    retention_ms: Millis | None = None
    """How long the committer wants these kept; only old clients can ask for it."""
    knows_missing_group: bool = True


@value
class CommitTransactionOffsets:
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
    """A marker has arrived: the producer's pending offsets become real, or never were."""

    ticket: Ticket
    producer_id: ProducerId
    is_commit: bool


@value
class TopicPartitions:
    topic: Topic
    partitions: tuple[Partition, ...]
    topic_id: Uuid = ZERO_UUID


@value
class FetchOffsets:
    """Offsets of one group; `topics=None` asks for all that it has committed."""

    ticket: Ticket
    group_id: GroupId
    topics: tuple[TopicPartitions, ...] | None = None
    require_stable: bool = False


@value
class FetchManyOffsets:
    """Offsets of many groups at once, each with a ticket and an answer of its own."""

    fetches: tuple[FetchOffsets, ...]


@value
class DeleteOffsets:
    ticket: Ticket
    group_id: GroupId
    topics: tuple[TopicPartitions, ...]


@value
class DescribeGroups:
    ticket: Ticket
    group_ids: tuple[GroupId, ...]
    knows_missing_group: bool = True


@value
class ListGroups:
    ticket: Ticket
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@value
class DeleteGroups:
    ticket: Ticket
    group_ids: tuple[GroupId, ...]


@value
class DeletedTopic:
    topic: Topic
    topic_id: Uuid = ZERO_UUID


@value
class ForgetTopics:
    """Topics are gone, and with them every offset committed for them."""

    topics: tuple[DeletedTopic, ...]


@value
class TimerFired:
    key: TimerKey


@value
class Shutdown:
    """This node no longer coordinates: whoever waits is sent to look for the coordinator."""


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

Command: TypeAlias = Request | FetchManyOffsets | ForgetTopics | TimerFired | Shutdown
