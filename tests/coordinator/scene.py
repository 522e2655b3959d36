"""A coordinator and the clients around it, for tests that tell a scenario step by step.

Client `a` is given the member id `a-1`, then `a-2` and so on; its requests are answered in what
asking returned, at once or later.
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
    Leaver,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    Request,
    SyncGroup,
    Ticket,
    TopicPartitions,
)
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.replies import (
    DescribedGroup,
    GroupsDescribed,
    Joined,
    OffsetsFetched,
    Refused,
    Reply,
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
from kohort.wire.embedded import Subscription, encode_subscription
from tests.coordinator.driver import Driver

T = TypeVar("T")

GROUP = GroupId("g")
TOPIC = Topic("t")
INITIAL_DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def reads(*topics: str, name: str = "range") -> tuple[Protocol, ...]:
    """What a consumer offers that reads these topics."""
    subscription = Subscription(topics=tuple(Topic(topic) for topic in topics))
    return (Protocol(name=name, metadata=encode_subscription(subscription)),)


def share_of(member: str) -> bytes:
    return f"share of {member}".encode()


@dataclass
class Asked:
    """A request that was sent, and the answer to it once there is one."""

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
        return reply.error if isinstance(reply, Refused) else ErrorCode.NONE

    def told(self, kind: type[T]) -> T:
        assert isinstance(self.reply, kind), self.reply
        return self.reply

    @property
    def joined(self) -> Joined:
        return self.told(Joined)

    @property
    def assignment(self) -> bytes:
        return self.told(Synced).assignment

    @property
    def _replies(self) -> list[Reply]:
        return [reply for reply in self.driver.replies if reply.ticket == self.ticket]


@dataclass
class Scene:
    driver: Driver = field(default_factory=Driver)
    _last_ticket: int = 0
    _ids_given: Counter[str] = field(default_factory=Counter)

    def ask(self, make: Callable[[Ticket], Request]) -> Asked:
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        return Asked(ticket, self.driver.decide(make(ticket)), self.driver)

    def advance(self, by_ms: int) -> None:
        self.driver.advance(self.driver.now + by_ms)

    # Asking

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
        protocols: tuple[Protocol, ...] = reads(TOPIC),
        is_old: bool = False,
    ) -> Asked:
        if not member:
            self._ids_given[client] += 1
        return self.ask(
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
    ) -> Asked:
        return self.ask(
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
    ) -> Asked:
        return self.ask(
            lambda ticket: Heartbeat(
                ticket=ticket,
                group_id=GroupId(group),
                member_id=MemberId(member),
                instance_id=None if instance is None else InstanceId(instance),
                generation=Generation(generation),
            )
        )

    def leave(self, *members: str, group: str = GROUP) -> Asked:
        leavers = tuple(Leaver(member_id=MemberId(member)) for member in members)
        return self.ask(
            lambda ticket: LeaveGroup(ticket=ticket, group_id=GroupId(group), leavers=leavers)
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
    ) -> Asked:
        return self.ask(
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

    # Looking

    def committed(self, *partitions: int, group: str = GROUP, topic: str = TOPIC) -> list[int]:
        """The offsets of these partitions, -1 where there is none."""
        topics = TopicPartitions(topic=Topic(topic), partitions=tuple(map(Partition, partitions)))
        asked = self.ask(
            lambda ticket: FetchOffsets(ticket=ticket, group_id=GroupId(group), topics=(topics,))
        )
        return [each.offset for each in asked.told(OffsetsFetched).offsets]

    def describe(self, group: str = GROUP) -> DescribedGroup:
        asked = self.ask(lambda ticket: DescribeGroups(ticket=ticket, group_ids=(GroupId(group),)))
        (described,) = asked.told(GroupsDescribed).groups
        return described

    def state(self, group: str = GROUP) -> str:
        return self.describe(group).state

    def session_deadline(self, member: str, group: str = GROUP) -> int | None:
        return self.driver.timers.get(TimerKey(TimerKind.SESSION, GroupId(group), MemberId(member)))

    # What well-behaved clients do

    def admit(
        self,
        client: str,
        *,
        group: str = GROUP,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocols: tuple[Protocol, ...] = reads(TOPIC),
    ) -> Asked:
        """Join without an id, be given one, and join with it."""
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
        return join(first.told(Refused).member_id)

    def settle(self, *joins: Asked) -> None:
        """Let the first rebalance of a group wait for as long as it likes."""
        while joins[0].is_parked:
            self.advance(INITIAL_DELAY_MS)

    def form(self, *clients: str, group: str = GROUP) -> int:
        """A stable group of these, the first leading; each has the share its id says."""
        joins = [self.admit(client, group=group) for client in clients]
        self.settle(*joins)
        leader = joins[0].joined
        shares = {str(each.member_id): share_of(each.member_id) for each in leader.members}
        self.sync(leader.member_id, leader.generation, shares, group=group)
        for join in joins[1:]:
            self.sync(join.joined.member_id, leader.generation, group=group)
        assert self.state(group) == "Stable"
        return leader.generation


def stable_pair() -> Scene:
    """Members a-1, the leader, and b-1, in a stable generation 1."""
    scene = Scene()
    scene.form("a", "b")
    return scene


def completing_pair() -> Scene:
    """Members a-1, the leader, and b-1, waiting for the assignment of generation 1."""
    scene = Scene()
    scene.settle(scene.admit("a"), scene.admit("b"))
    return scene


def static_one() -> Scene:
    """The static member a-1 of instance i, alone in a stable generation 1."""
    scene = Scene()
    scene.settle(scene.join("a", instance="i"))
    scene.sync("a-1", 1, {"a-1": share_of("a-1")}, instance="i")
    return scene
