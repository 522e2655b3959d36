"""A coordinator with clients, for tests that run a scenario step by step.

Client `a` gets the member id `a-1`, then `a-2` and so on. A request returns a `SentRequest`, which
has the reply, at once or later.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from kohort.coordinator.commands import (
    CommitOffsets,
    DescribeGroups,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    Request,
    RequestedTopic,
    SyncGroup,
    Ticket,
)
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.replies import (
    GroupDescription,
    GroupsDescribed,
    Joined,
    OffsetsFetched,
    Reply,
    RequestRefused,
    Synced,
)
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
)
from kohort.wire.consumer_protocol import Subscription, encode_subscription
from tests.coordinator.driver import Driver

T = TypeVar("T")

GROUP = GroupId("g")
TOPIC = Topic("t")
INITIAL_DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription_to(*topics: str, name: str = "range") -> tuple[Protocol, ...]:
    """The protocols of a consumer with this subscription."""
    subscription = Subscription(topics=tuple(Topic(topic) for topic in topics))
    return (Protocol(name=name, metadata=encode_subscription(subscription)),)


def assignment_of(member: str) -> bytes:
    return f"share of {member}".encode()


@dataclass
class SentRequest:
    """A request that was sent, and its reply."""

    ticket: Ticket
    outcome: Outcome
    driver: Driver

    @property
    def is_parked(self) -> bool:
        return not self._replies

    @property
    def reply(self) -> Reply:
        (reply,) = self._replies
        return reply

    @property
    def error(self) -> ErrorCode:
        reply = self.reply
        return reply.error if isinstance(reply, RequestRefused) else ErrorCode.NONE

    def expect(self, kind: type[T]) -> T:
        assert isinstance(self.reply, kind), self.reply
        return self.reply

    @property
    def joined(self) -> Joined:
        return self.expect(Joined)

    @property
    def assignment(self) -> bytes:
        return self.expect(Synced).assignment

    @property
    def _replies(self) -> list[Reply]:
        return [reply for reply in self.driver.replies if reply.ticket == self.ticket]


@dataclass
class Scenario:
    driver: Driver = field(default_factory=Driver)
    _last_ticket: int = 0
    _ids_given: Counter[str] = field(default_factory=Counter)

    def send(self, make: Callable[[Ticket], Request]) -> SentRequest:
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        return SentRequest(ticket, self.driver.decide(make(ticket)), self.driver)

    def advance(self, by_ms: int) -> None:
        self.driver.advance(self.driver.now + by_ms)

    # Requests

    def join(
        self,
        client: str = "a",
        member: str = "",
        *,
        instance: str | None = None,
        group: str = GROUP,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        type_: str = "consumer",
        protocols: tuple[Protocol, ...] = subscription_to(TOPIC),
        is_old: bool = False,
    ) -> SentRequest:
        if not member:
            self._ids_given[client] += 1
        return self.send(
            lambda ticket: JoinGroup(
                ticket=ticket,
                group_id=GroupId(group),
                member_id=MemberId(member),
                fresh_member_id=MemberId(f"{client}-{self._ids_given[client]}"),
                instance_id=None if instance is None else InstanceId(instance),
                client_id=client,
                client_host=f"/10.0.0.{ord(client[0]) - ord('a') + 1}",
                session_timeout_ms=Millis(session_ms),
                rebalance_timeout_ms=Millis(rebalance_ms),
                protocol_type=type_,
                protocols=protocols,
                knows_member_id_required=not is_old,
            )
        )

    def sync(
        self,
        member: str,
        generation: int,
        shares: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        group: str = GROUP,
        type_: str | None = None,
        protocol: str | None = None,
    ) -> SentRequest:
        return self.send(
            lambda ticket: SyncGroup(
                ticket=ticket,
                group_id=GroupId(group),
                member_id=MemberId(member),
                instance_id=None if instance is None else InstanceId(instance),
                generation=Generation(generation),
                protocol_type=type_,
                protocol=protocol,
                assignments=tuple(
                    MemberAssignment(member_id=MemberId(to), assignment=share)
                    for to, share in (shares or {}).items()
                ),
            )
        )

    def heartbeat(
        self, member: str, generation: int, *, instance: str | None = None, group: str = GROUP
    ) -> SentRequest:
        return self.send(
            lambda ticket: Heartbeat(
                ticket=ticket,
                group_id=GroupId(group),
                member_id=MemberId(member),
                instance_id=None if instance is None else InstanceId(instance),
                generation=Generation(generation),
            )
        )

    def leave(self, *members: str, group: str = GROUP) -> SentRequest:
        leavers = tuple(LeavingMember(member_id=MemberId(member)) for member in members)
        return self.send(
            lambda ticket: LeaveGroup(ticket=ticket, group_id=GroupId(group), members=leavers)
        )

    def commit(
        self,
        offsets: Mapping[int, int],
        member: str = "",
        generation: int = -1,
        *,
        instance: str | None = None,
        group: str = GROUP,
        topic: str = TOPIC,
    ) -> SentRequest:
        return self.send(
            lambda ticket: CommitOffsets(
                ticket=ticket,
                group_id=GroupId(group),
                member_id=MemberId(member),
                instance_id=None if instance is None else InstanceId(instance),
                generation=Generation(generation),
                offsets=tuple(
                    OffsetToCommit(
                        topic=Topic(topic), partition=Partition(number), offset=Offset(offset)
                    )
                    for number, offset in offsets.items()
                ),
            )
        )

    # Inspection

    def committed(self, *partitions: int, group: str = GROUP, topic: str = TOPIC) -> list[int]:
        """The committed offsets of these partitions, -1 if missing."""
        topics = RequestedTopic(topic=Topic(topic), partitions=tuple(map(Partition, partitions)))
        asked = self.send(
            lambda ticket: FetchOffsets(ticket=ticket, group_id=GroupId(group), topics=(topics,))
        )
        return [each.offset for each in asked.expect(OffsetsFetched).offsets]

    def describe(self, group: str = GROUP) -> GroupDescription:
        asked = self.send(lambda ticket: DescribeGroups(ticket=ticket, group_ids=(GroupId(group),)))
        (described,) = asked.expect(GroupsDescribed).groups
        return described

    def state(self, group: str = GROUP) -> str:
        return self.describe(group).state

    def session_deadline(self, member: str, group: str = GROUP) -> int | None:
        return self.driver.timers.get(TimerKey(TimerKind.SESSION, GroupId(group), MemberId(member)))

    # Sequences of requests

    def admit(
        self,
        client: str,
        *,
        group: str = GROUP,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocols: tuple[Protocol, ...] = subscription_to(TOPIC),
    ) -> SentRequest:
        """Join without a member id, then with the issued id."""
        join = partial(
            self.join,
            client,
            group=group,
            session_ms=session_ms,
            rebalance_ms=rebalance_ms,
            protocols=protocols,
        )
        first = join()
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        return join(first.expect(RequestRefused).member_id)

    def settle(self, *joins: SentRequest) -> None:
        """Wait until the initial delay has ended."""
        while joins[0].is_parked:
            self.advance(INITIAL_DELAY_MS)

    def form(self, *clients: str, group: str = GROUP) -> int:
        """Create a stable group with the first member as the leader."""
        joins = [self.admit(client, group=group) for client in clients]
        self.settle(*joins)
        leader = joins[0].joined
        shares = {str(each.member_id): assignment_of(each.member_id) for each in leader.members}
        self.sync(leader.member_id, leader.generation, shares, group=group)
        for join in joins[1:]:
            self.sync(join.joined.member_id, leader.generation, group=group)
        assert self.state(group) == "Stable"
        return leader.generation


def stable_pair() -> Scenario:
    """A stable group in generation 1 with the members a-1, the leader, and b-1."""
    scenario = Scenario()
    scenario.form("a", "b")
    return scenario


def completing_pair() -> Scenario:
    """A group in CompletingRebalance, generation 1, with the members a-1, the leader, and b-1."""
    scenario = Scenario()
    scenario.settle(scenario.admit("a"), scenario.admit("b"))
    return scenario


def static_one() -> Scenario:
    """A stable group in generation 1 with the static member a-1 of instance i."""
    scenario = Scenario()
    scenario.settle(scenario.join("a", instance="i"))
    scenario.sync("a-1", 1, {"a-1": assignment_of("a-1")}, instance="i")
    return scenario
