"""One group's life, played so that every kind of event happens: the examples in docs/events.md.

The machine is the real one; its clock, its ids and its log are made up, so that the same comes out
every time. Nothing that serves uses this module.
"""

from collections.abc import Callable
from typing import Final

from kohort.coordinator.commands import (
    NO_MEMBER,
    CommitOffsets,
    JoinGroup,
    LeaveGroup,
    Leaver,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    SyncGroup,
)
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import Note
from kohort.coordinator.records import Record
from kohort.coordinator.replies import Reply
from kohort.node.runtime import Keeper, NotKept, Runtime
from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    value,
)
from kohort.wire.embedded import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)

_START: Final = 1_767_258_000_000
_DAY: Final = 24 * 60 * 60_000
_GROUP: Final = GroupId("billing")
_TOPIC: Final = Topic("orders")


@value
class _Actor:
    client_id: str
    member_id: MemberId
    host: str
    instance_id: InstanceId | None = None
    session_ms: int = 45_000


_ANNA: Final = _Actor(
    client_id="billing-1", member_id=MemberId("billing-1-6f2c"), host="/10.0.0.1", session_ms=90_000
)
_BERT: Final = _Actor(
    client_id="billing-2",
    member_id=MemberId("rack-2-91d0"),
    host="/10.0.0.2",
    instance_id=InstanceId("rack-2"),
    session_ms=300_000,
)
_BERT_AGAIN: Final = _Actor(
    client_id="billing-2",
    member_id=MemberId("rack-2-c07e"),
    host="/10.0.0.2",
    instance_id=InstanceId("rack-2"),
    session_ms=300_000,
)
_CARL: Final = _Actor(client_id="billing-3", member_id=MemberId("billing-3-a5b8"), host="/10.0.0.3")
_DORA: Final = _Actor(
    client_id="billing-4", member_id=MemberId("billing-4-0e13"), host="/10.0.0.4", session_ms=10_000
)


class _MadeUpLog(Keeper):
    """Keeps everything, unless it is told to be full."""

    def __init__(self) -> None:
        self.is_full = False

    @property
    def is_durable(self) -> bool:
        return True

    def keep(self, records: list[Record], now: Millis) -> list[Record]:  # noqa: ARG002  # a seam
        if self.is_full:
            raise NotKept(ErrorCode.KAFKA_STORAGE_ERROR)
        return records

    def when_durable(self, then: Callable[[], None]) -> None:
        then()


class _Stage:
    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.log = _MadeUpLog()
        self._runtime = Runtime(Coordinator(), self.log, self.notes.extend)
        self._replies: list[Reply] = []
        self._now = Millis(_START)
        self._runtime.resume(self._now)

    def pass_time(self, ms: int) -> None:
        """Whatever is due happens at its own moment."""
        end = Millis(self._now + ms)
        while (deadline := self._runtime.next_deadline()) is not None and deadline <= end:
            self._now = max(self._now, deadline)
            self._runtime.fire_due(self._now)
        self._now = end

    def join(self, actor: _Actor, *, is_known: bool = True, reason: str | None = None) -> None:
        metadata = encode_subscription(Subscription(topics=(_TOPIC,)))
        command = JoinGroup(
            ticket=self._runtime.issue(self._replies.append),
            group_id=_GROUP,
            member_id=actor.member_id if is_known else NO_MEMBER,
            fresh_member_id=actor.member_id,
            instance_id=actor.instance_id,
            client_id=actor.client_id,
            client_host=actor.host,
            session_timeout_ms=Millis(actor.session_ms),
            rebalance_timeout_ms=Millis(60_000),
            protocol_type="consumer",
            protocols=(Protocol(name="range", metadata=metadata),),
            reason=reason,
        )
        self._runtime.submit(command, self._now)

    def sync(self, actor: _Actor, generation: int, **shares: tuple[_Actor, range]) -> None:
        """The leader says what each gets; the others only ask."""
        assignments = (
            MemberAssignment(member_id=receiver.member_id, assignment=_assignment(partitions))
            for receiver, partitions in shares.values()
        )
        command = SyncGroup(
            ticket=self._runtime.issue(self._replies.append),
            group_id=_GROUP,
            member_id=actor.member_id,
            instance_id=actor.instance_id,
            generation=Generation(generation),
            assignments=tuple(assignments),
        )
        self._runtime.submit(command, self._now)

    def commit(self, actor: _Actor, generation: int) -> None:
        offset = OffsetToCommit(topic=_TOPIC, partition=Partition(0), offset=Offset(42))
        command = CommitOffsets(
            ticket=self._runtime.issue(self._replies.append),
            group_id=_GROUP,
            member_id=actor.member_id,
            generation=Generation(generation),
            offsets=(offset,),
        )
        self._runtime.submit(command, self._now)

    def leave(self, actor: _Actor, reason: str) -> None:
        leaver = Leaver(member_id=actor.member_id, reason=reason)
        ticket = self._runtime.issue(self._replies.append)
        command = LeaveGroup(ticket=ticket, group_id=_GROUP, leavers=(leaver,))
        self._runtime.submit(command, self._now)


def _assignment(partitions: range) -> bytes:
    given = TopicPartitions(topic=_TOPIC, partitions=tuple(map(Partition, partitions)))
    return encode_assignment(Assignment(assigned_partitions=(given,)))


def play() -> list[Note]:
    """Everything that is noticed, from the first join until the group is forgotten."""
    stage = _Stage()
    # Anna and Bert, who is static, begin.
    stage.join(_ANNA, is_known=False)
    stage.join(_ANNA)
    stage.pass_time(40)
    stage.join(_BERT, is_known=False)
    stage.pass_time(6_000)
    stage.sync(_ANNA, 1, anna=(_ANNA, range(2)), bert=(_BERT, range(2, 4)))
    stage.sync(_BERT, 1)
    # Carl comes, and the others have to join again.
    stage.pass_time(20_000)
    stage.join(_CARL, is_known=False)
    stage.join(_CARL, reason="scaled up")
    stage.pass_time(350)
    stage.join(_ANNA)
    stage.pass_time(710)
    stage.join(_BERT)
    stage.pass_time(12)
    shares = {"anna": (_ANNA, range(2)), "bert": (_BERT, range(2, 3)), "carl": (_CARL, range(3, 4))}
    stage.sync(_ANNA, 2, **shares)
    stage.sync(_BERT, 2)
    stage.sync(_CARL, 2)
    # Anna commits, then once more as if nothing had happened, then while the disk is full.
    stage.commit(_ANNA, 2)
    stage.commit(_ANNA, 1)
    stage.log.is_full = True
    stage.commit(_ANNA, 2)
    stage.log.is_full = False
    # Bert's process restarts. Dora asks for an id and is never seen again.
    stage.join(_BERT_AGAIN, is_known=False)
    stage.join(_DORA, is_known=False)
    stage.pass_time(10_000)
    # Carl and Anna leave, and Bert hangs until his session is over; then nobody comes for a week.
    stage.leave(_CARL, "the consumer is being closed")
    stage.leave(_ANNA, "the consumer is being closed")
    stage.pass_time(8 * _DAY)
    return stage.notes
