"""A day of ten thousand groups of ten members through the real coordinator, in virtual time.

There are no sockets and no disk: the node's runtime, its timers, the coordinator, and scripted
members. Every group starts, commits all day and is redeployed once, member by member; some members
crash. The cost per command, including the scripts, is compared with that of a day of fewer groups:
if the ratio stays low, the cost does not grow with the number of groups. It grows a little: a
hundred groups fit in the CPU caches, ten thousand do not. The same heartbeat takes three times as
long when its data is not in the caches.
"""

import gc
import heapq
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from bench.kit.harness import Effort, Result, tell
from kohort.coordinator.commands import (
    NO_MEMBER,
    CommitOffsets,
    DescribeGroups,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    SyncGroup,
    Ticket,
)
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.events import RebalanceStarted
from kohort.coordinator.records import Record
from kohort.coordinator.replies import (
    GroupsDescribed,
    HeartbeatAccepted,
    Joined,
    Reply,
    RequestRefused,
    Synced,
)
from kohort.node.broker import group_runtime
from kohort.types import (
    DeadlineMillis,
    ErrorCode,
    Generation,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
)
from kohort.wire.consumer_protocol import Subscription, encode_subscription

SIZES, QUICK_SIZES = (100, 1_000, 10_000), (10, 30)
MEMBERS: Final = 10
GROWTH_MAX: Final = 1.5

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

BEAT_MS: Final = 10 * MINUTE
"""Kafka's default is three seconds, which would be three billion heartbeats."""
HEARS_WITHIN_MS: Final = 3 * SECOND
"""Delay of a member's heartbeat after a rebalance starts, as with Kafka's interval."""
SESSION_MS: Final = Millis(30 * MINUTE)
REBALANCE_MS: Final = Millis(MINUTE)
COMMIT_MS: Final = HOUR
LATENCY_MS: Final = 1
CRASH_EVERY: Final = 50
"""One member in this many crashes once and returns a minute later with another id."""

TOPIC: Final = Topic("orders")
PROTOCOLS: Final = (
    Protocol(name="range", metadata=encode_subscription(Subscription(topics=(TOPIC,)))),
)


Plan = tuple[int, int, Callable[[], None]]
"""Time, sequence number and call."""


class World:
    """A coordinator, its timers and the scheduled calls."""

    def __init__(self) -> None:
        self.now = Millis(0)
        self.asked: Counter[str] = Counter()
        self.rebalances = 0
        self.groups: dict[GroupId, list[Member]] = {}
        self.runtime = group_runtime(Coordinator(), self)
        self.runtime.resume(self.now)
        self._planned = 0
        # By the second: one heap of all that a day will bring would cost more than the day.
        self._second = -1
        self._plans: list[Plan] = []
        self._later: dict[int, list[Plan]] = {}

    def plan(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._planned += 1
        at = self.now + delay_ms
        second = at // SECOND
        if second <= self._second:
            heapq.heappush(self._plans, (at, self._planned, action))
        else:
            self._later.setdefault(second, []).append((at, self._planned, action))

    def run(self, until: int) -> None:
        for second in range(until // SECOND):
            self._second = second
            self._plans = self._later.pop(second, [])
            heapq.heapify(self._plans)
            self._run_second()

    def _run_second(self) -> None:
        while self._plans:
            due = self.runtime.timers.earliest
            if due is not None and due <= self._plans[0][0]:
                self.now = Millis(max(self.now, due))
                self.runtime.fire_due(DeadlineMillis(self.now), self.now)
                self._end_iteration()
                continue
            at, _, action = heapq.heappop(self._plans)
            self.now = Millis(at)
            self.runtime.timers.now = DeadlineMillis(at)
            action()

    def ask(
        self,
        kind: str,
        build: Callable[[Ticket], JoinGroup | SyncGroup | LeaveGroup | CommitOffsets],
        hear: Callable[[Reply], None],
    ) -> None:
        self.asked[kind] += 1
        ticket = self.runtime.open(Waiter(hear))
        self.runtime.submit(build(ticket), self.now)
        self._end_iteration()

    def _end_iteration(self) -> None:
        self.runtime.append_deferred()
        self.runtime.appended.clear()
        notes, self.runtime.events = self.runtime.events, []
        for note in notes:
            if isinstance(note, RebalanceStarted):
                self.rebalances += 1
                for place, member in enumerate(self.groups[note.group_id]):
                    self.plan(1 + place * HEARS_WITHIN_MS // MEMBERS, member.beat)

    # As the runtime's record writer: everything is appended, and nothing remembered.

    def append(
        self, outcomes: Sequence[tuple[list[Record], Millis]]
    ) -> list[list[Record] | ErrorCode]:
        return [records for records, _ in outcomes]


class Waiter:
    """Waits for one reply."""

    __slots__ = ("deliver",)

    def __init__(self, deliver: Callable[[Reply], None]) -> None:
        self.deliver = deliver


class Member:
    """A scripted member: joins, syncs, sends heartbeats, commits; leaves or crashes on command."""

    def __init__(self, world: World, group_id: GroupId, number: int) -> None:
        self._world = world
        self._group_id = group_id
        self._number = number
        self._life = 0
        self._member_id = NO_MEMBER
        self._generation = Generation(-1)
        self._is_at_work = False
        self._beats = self._commits = _nothing
        self._beat: Heartbeat | None = None

    def live(self) -> None:
        """Run from the first join until it leaves or crashes."""
        self._life += 1
        self._member_id = NO_MEMBER
        self._is_at_work = False
        self._join()
        self._beats = partial(self._keep_beating, self._life)
        self._commits = partial(self._keep_committing, self._life)
        self._beats()
        self._commits()

    def crash(self) -> None:
        self._life += 1
        self._is_at_work = False
        self._world.plan(MINUTE, self.live)

    def restart(self) -> None:
        self._life += 1
        self._is_at_work = False
        leaver = LeavingMember(member_id=self._member_id)
        self._world.ask(
            "leave",
            lambda ticket: LeaveGroup(ticket=ticket, group_id=self._group_id, members=(leaver,)),
            _ignore,
        )
        self._world.plan(10 * SECOND, self.live)

    def beat(self) -> None:
        if not self._is_at_work:
            return
        world = self._world
        world.asked["heartbeat"] += 1
        if self._beat is None:
            # As a connection has it: the same until the generation ends.
            self._beat = Heartbeat(
                ticket=Ticket(0),
                group_id=self._group_id,
                member_id=self._member_id,
                generation=self._generation,
            )
        reply = world.runtime.answer_now(self._beat, world.now)
        if not isinstance(reply, HeartbeatAccepted):
            self._on_refused(reply)

    def _keep_beating(self, life: int) -> None:
        if life == self._life:
            self.beat()
            self._world.plan(BEAT_MS, self._beats)

    def _keep_committing(self, life: int) -> None:
        if life == self._life:
            if self._is_at_work:
                self._world.ask("commit", self._commit, _ignore)
            self._world.plan(COMMIT_MS, self._commits)

    def _commit(self, ticket: Ticket) -> CommitOffsets:
        offset = OffsetToCommit(
            topic=TOPIC, partition=Partition(self._number), offset=Offset(self._world.now)
        )
        return CommitOffsets(
            ticket=ticket,
            group_id=self._group_id,
            member_id=self._member_id,
            generation=self._generation,
            offsets=(offset,),
        )

    def _join(self) -> None:
        self._is_at_work = False
        life = self._life
        fresh = MemberId(f"{self._group_id}-{self._number}-{life}-6b2f9d1c8f0e")
        self._world.ask(
            "join",
            lambda ticket: JoinGroup(
                ticket=ticket,
                group_id=self._group_id,
                member_id=self._member_id,
                fresh_member_id=fresh,
                client_id="order-service",
                client_host="/10.0.0.7",
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=PROTOCOLS,
            ),
            lambda reply: self._soon(life, partial(self._on_joined, reply)),
        )

    def _on_joined(self, reply: Reply) -> None:
        if not isinstance(reply, Joined):
            self._on_refused(reply)
            return
        self._generation = reply.generation
        self._beat = None
        shares = tuple(
            MemberAssignment(member_id=each.member_id, assignment=bytes(60))
            for each in reply.members
        )
        life = self._life
        self._world.ask(
            "sync",
            lambda ticket: SyncGroup(
                ticket=ticket,
                group_id=self._group_id,
                member_id=self._member_id,
                generation=self._generation,
                protocol_type="consumer",
                protocol="range",
                assignments=shares,
            ),
            lambda synced: self._soon(life, partial(self._on_synced, synced)),
        )

    def _on_synced(self, reply: Reply) -> None:
        if isinstance(reply, Synced):
            self._is_at_work = True
        else:
            self._on_refused(reply)

    def _on_refused(self, reply: Reply) -> None:
        assert isinstance(reply, RequestRefused), reply
        if reply.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = reply.member_id
        elif reply.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = NO_MEMBER
        else:
            assert reply.error is ErrorCode.REBALANCE_IN_PROGRESS, reply
        self._join()

    def _soon(self, life: int, action: Callable[[], None]) -> None:
        """Deliver a response after the network delay, unless the member died meanwhile."""

        def arrive() -> None:
            if life == self._life:
                action()

        self._world.plan(LATENCY_MS, arrive)


def _nothing() -> None:
    """The callback of a member that is not alive."""


def _ignore(reply: Reply) -> None:
    """Ignore the reply."""


def make_world(groups: int) -> World:
    """All start in the first ten minutes, and are redeployed between hours two and twenty."""
    world = World()
    for number in range(groups):
        group_id = GroupId(f"group-{number:05}")
        members = [Member(world, group_id, place) for place in range(MEMBERS)]
        world.groups[group_id] = members
        begins = number * 10 * MINUTE // groups
        deployed = 2 * HOUR + number * 18 * HOUR // groups
        for place, member in enumerate(members):
            world.plan(begins + place * 100, member.live)
            world.plan(deployed + place * 2 * MINUTE, member.restart)
            if (number * MEMBERS + place) % CRASH_EVERY == 0:
                world.plan(deployed + HOUR, member.crash)
    return world


def assert_all_is_well(world: World) -> None:
    """At the end of the day every group is stable and has all its members."""
    told: list[Reply] = []
    ticket = world.runtime.open(Waiter(told.append))
    command = DescribeGroups(ticket=ticket, group_ids=tuple(world.groups))
    world.runtime.submit(command, world.now)
    (reply,) = told
    assert isinstance(reply, GroupsDescribed)
    for group in reply.groups:
        assert (group.state, len(group.members)) == ("Stable", MEMBERS), group


def measure(effort: Effort) -> Iterator[Result]:
    # As a node has it: a collector that looks often would walk through all groups to no avail.
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    costs: dict[int, float] = {}
    for size in effort.pick(SIZES, QUICK_SIZES):
        world = make_world(size)
        began = time.process_time()
        world.run(DAY)
        seconds = time.process_time() - began
        assert_all_is_well(world)
        commands = world.asked.total()
        costs[size] = seconds / commands * 1e6
        told = ", ".join(f"{count:,} {kind}s" for kind, count in world.asked.items())
        sys.stderr.write(
            f"{size:,} groups: a day in {seconds:,.0f} s, {world.rebalances:,} rebalances, {told}\n"
        )
        smallest = next(iter(costs))
        yield Result(
            metric=f"{size:,} groups of {MEMBERS}, a command vs one of {smallest:,} groups",
            kohort=costs[size],
            peer=costs[smallest],
            target=GROWTH_MAX if size > smallest else None,
        )
        yield Result(
            metric=f"{size:,} groups of {MEMBERS}, the whole day vs real time",
            kohort=seconds,
            peer=DAY / 1000,
            target=None,
            unit="s",
        )


if __name__ == "__main__":
    tell(__doc__ or "", "smaller or real", measure, rounds=1)
