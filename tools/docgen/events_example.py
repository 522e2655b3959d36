"""The examples of docs/reference/events.md: a scenario in which every event of a group occurs.

The coordinator is the real one. The clock, the member ids and the log are fixed, so the output is
deterministic.
"""

from collections.abc import Sequence
from typing import Final

from kohort.coordinator.commands import (
    NO_MEMBER,
    Command,
    CommitOffsets,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    SyncGroup,
)
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.events import GroupEvent
from kohort.coordinator.records import Record
from kohort.coordinator.replies import Reply
from kohort.node.broker import group_runtime
from kohort.types import (
    DeadlineMillis,
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
from kohort.wire.consumer_protocol import (
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
class _ExampleMember:
    client_id: str
    member_id: MemberId
    host: str
    instance_id: InstanceId | None = None
    session_ms: int = 45_000


_MEMBER_1: Final = _ExampleMember(
    client_id="billing-1", member_id=MemberId("billing-1-6f2c"), host="/10.0.0.1", session_ms=90_000
)
_MEMBER_2: Final = _ExampleMember(
    client_id="billing-2",
    member_id=MemberId("rack-2-91d0"),
    host="/10.0.0.2",
    instance_id=InstanceId("rack-2"),
    session_ms=300_000,
)
_MEMBER_2_RESTARTED: Final = _ExampleMember(
    client_id="billing-2",
    member_id=MemberId("rack-2-c07e"),
    host="/10.0.0.2",
    instance_id=InstanceId("rack-2"),
    session_ms=300_000,
)
_MEMBER_3: Final = _ExampleMember(
    client_id="billing-3", member_id=MemberId("billing-3-a5b8"), host="/10.0.0.3"
)
_MEMBER_4: Final = _ExampleMember(
    client_id="billing-4", member_id=MemberId("billing-4-0e13"), host="/10.0.0.4", session_ms=10_000
)


class _FakeLog:
    """Stores nothing, and can report a full disk."""

    def __init__(self) -> None:
        self.is_full = False

    def append(
        self, outcomes: Sequence[tuple[list[Record], Millis]]
    ) -> list[list[Record] | ErrorCode]:
        error = ErrorCode.KAFKA_STORAGE_ERROR
        return [error if self.is_full else records for records, _ in outcomes]


class _IgnoreReply:
    def deliver(self, reply: Reply) -> None: ...


class _ExampleGroup:
    def __init__(self) -> None:
        self.log = _FakeLog()
        self._runtime = group_runtime(Coordinator(), self.log)
        self._now = Millis(_START)
        self._runtime.timers.now = DeadlineMillis(self._now)
        self._runtime.resume(self._now)

    def advance(self, ms: int) -> None:
        """Advance the clock, and fire each timer at its deadline."""
        end = Millis(self._now + ms)
        while (deadline := self._runtime.timers.earliest) is not None and deadline <= end:
            self._now = Millis(max(self._now, deadline))
            self._runtime.fire_due(DeadlineMillis(self._now), self._now)
        self._now = end
        self._runtime.timers.now = DeadlineMillis(end)

    @property
    def events(self) -> list[GroupEvent]:
        return self._runtime.events

    def _submit(self, command: Command) -> None:
        self._runtime.submit(command, self._now)
        self._runtime.append_deferred()

    def join(
        self, member: _ExampleMember, *, is_known: bool = True, reason: str | None = None
    ) -> None:
        metadata = encode_subscription(Subscription(topics=(_TOPIC,)))
        command = JoinGroup(
            ticket=self._runtime.open(_IgnoreReply()),
            group_id=_GROUP,
            member_id=member.member_id if is_known else NO_MEMBER,
            fresh_member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.host,
            session_timeout_ms=Millis(member.session_ms),
            rebalance_timeout_ms=Millis(60_000),
            protocol_type="consumer",
            protocols=(Protocol(name="range", metadata=metadata),),
            reason=reason,
        )
        self._submit(command)

    def sync(
        self, member: _ExampleMember, generation: int, **shares: tuple[_ExampleMember, range]
    ) -> None:
        """The leader sends the assignment of every member; the others send none."""
        assignments = (
            MemberAssignment(member_id=receiver.member_id, assignment=_assignment(partitions))
            for receiver, partitions in shares.values()
        )
        command = SyncGroup(
            ticket=self._runtime.open(_IgnoreReply()),
            group_id=_GROUP,
            member_id=member.member_id,
            instance_id=member.instance_id,
            generation=Generation(generation),
            assignments=tuple(assignments),
        )
        self._submit(command)

    def commit(self, member: _ExampleMember, generation: int) -> None:
        offset = OffsetToCommit(topic=_TOPIC, partition=Partition(0), offset=Offset(42))
        command = CommitOffsets(
            ticket=self._runtime.open(_IgnoreReply()),
            group_id=_GROUP,
            member_id=member.member_id,
            generation=Generation(generation),
            offsets=(offset,),
        )
        self._submit(command)

    def leave(self, member: _ExampleMember, reason: str) -> None:
        leaver = LeavingMember(member_id=member.member_id, reason=reason)
        ticket = self._runtime.open(_IgnoreReply())
        command = LeaveGroup(ticket=ticket, group_id=_GROUP, members=(leaver,))
        self._submit(command)


def _assignment(partitions: range) -> bytes:
    given = TopicPartitions(topic=_TOPIC, partitions=tuple(map(Partition, partitions)))
    return encode_assignment(Assignment(assigned_partitions=(given,)))


def example_events() -> list[GroupEvent]:
    """Return the events from the first join to the expiry of the group."""
    group = _ExampleGroup()
    # Members 1 and 2 join; member 2 is static.
    group.join(_MEMBER_1, is_known=False)
    group.join(_MEMBER_1)
    group.advance(40)
    group.join(_MEMBER_2, is_known=False)
    group.advance(6_000)
    group.sync(_MEMBER_1, 1, member_1=(_MEMBER_1, range(2)), member_2=(_MEMBER_2, range(2, 4)))
    group.sync(_MEMBER_2, 1)
    # Member 3 joins, so the others rejoin.
    group.advance(20_000)
    group.join(_MEMBER_3, is_known=False)
    group.join(_MEMBER_3, reason="scaled up")
    group.advance(350)
    group.join(_MEMBER_1)
    group.advance(710)
    group.join(_MEMBER_2)
    group.advance(12)
    shares = {
        "member_1": (_MEMBER_1, range(2)),
        "member_2": (_MEMBER_2, range(2, 3)),
        "member_3": (_MEMBER_3, range(3, 4)),
    }
    group.sync(_MEMBER_1, 2, **shares)
    group.sync(_MEMBER_2, 2)
    group.sync(_MEMBER_3, 2)
    # Member 1 commits: successfully, with an old generation, and while the disk is full.
    group.commit(_MEMBER_1, 2)
    group.commit(_MEMBER_1, 1)
    group.log.is_full = True
    group.commit(_MEMBER_1, 2)
    group.log.is_full = False
    # Member 2 restarts. Member 4 gets a member id but never joins with it.
    group.join(_MEMBER_2_RESTARTED, is_known=False)
    group.join(_MEMBER_4, is_known=False)
    group.advance(10_000)
    # Members 3 and 1 leave and the session of member 2 expires. Then the group is idle for a week.
    group.leave(_MEMBER_3, "the consumer is being closed")
    group.leave(_MEMBER_1, "the consumer is being closed")
    group.advance(8 * _DAY)
    return group.events
