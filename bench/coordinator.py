"""CPU time and memory of the coordinator alone, without sockets and disk, compared with targets.

A command is built and decided, and its records are applied, as in a node. The peer is the target: a
ratio of at most 1 meets it. A rebalance is measured from one member's changed subscription to the
last sync. Its target is the cost per member in a small group: if the ratio stays low as groups
grow, the cost is linear.
"""

import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from bench.kit.harness import Effort, Result, calls_per_round, cpu_seconds, tell
from kohort.coordinator.commands import (
    Command,
    CommitOffsets,
    Heartbeat,
    JoinGroup,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    SyncGroup,
    Ticket,
    TimerFired,
)
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.replies import Joined
from kohort.types import Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.consumer_protocol import Subscription, encode_subscription

HEARTBEATS_PER_SECOND: Final = 150_000
COMMITS_PER_SECOND: Final = 20_000
MEMORY_MB: Final = 500

GROUP_SIZES: Final = (10, 100, 1_000, 5_000)
SMALL: Final = 100
"""The group size whose cost per member the others are measured by."""
GROWTH_MAX: Final = 1.5

MANY_GROUPS, MEMBERS_EACH = 10_000, 10
PARTITIONS: Final = range(10)
NOW: Final = Millis(1_000)
TOPIC: Final = Topic("orders")

SUBSCRIPTIONS: Final = tuple(
    encode_subscription(Subscription(topics=topics))
    for topics in ((TOPIC,), (TOPIC, Topic("returns")))
)


class World:
    """A coordinator and scripted members. The client id of a member is its member id."""

    def __init__(self) -> None:
        self.machine = Coordinator()
        self.machine.resume(NOW)
        self.ticket = 0

    def next_ticket(self) -> Ticket:
        self.ticket += 1
        return Ticket(self.ticket)

    def do(self, command: Command) -> Outcome:
        outcome = self.machine.decide(command, NOW)
        for record in outcome.records:
            self.machine.apply(record)
        return outcome

    def join(self, group_id: GroupId, member_id: MemberId, *, is_new: bool, which: int) -> Outcome:
        command = JoinGroup(
            ticket=self.next_ticket(),
            group_id=group_id,
            member_id=MemberId("") if is_new else member_id,
            fresh_member_id=member_id,
            client_id=f"order-service-{self.ticket}",
            client_host="/10.0.0.7",
            session_timeout_ms=Millis(45_000),
            rebalance_timeout_ms=Millis(300_000),
            protocol_type="consumer",
            # Copied, as everything that comes off a wire is.
            protocols=tuple(
                Protocol(name=name, metadata=bytes(bytearray(SUBSCRIPTIONS[which])))
                for name in ("range", "cooperative-sticky")
            ),
            knows_member_id_required=False,
        )
        return self.do(command)

    def sync(
        self,
        group_id: GroupId,
        member_id: MemberId,
        generation: Generation,
        assigned: tuple[MemberId, ...] = (),
    ) -> None:
        assignments = tuple(
            MemberAssignment(member_id=each, assignment=bytes(60)) for each in assigned
        )
        command = SyncGroup(
            ticket=self.next_ticket(),
            group_id=group_id,
            member_id=member_id,
            generation=generation,
            protocol_type="consumer",
            protocol="range",
            assignments=assignments,
        )
        self.do(command)

    def sync_all(self, group_id: GroupId, joined: Outcome) -> None:
        """The leader syncs in the middle: half of the others wait for it, half come after."""
        replies = [reply for reply in joined.replies if isinstance(reply, Joined)]
        leader, *followers = sorted(replies, key=lambda reply: not reply.members)
        half = len(followers) // 2
        for reply in followers[:half]:
            self.sync(group_id, reply.member_id, reply.generation)
        listed = tuple(member.member_id for member in leader.members)
        self.sync(group_id, leader.member_id, leader.generation, listed)
        for reply in followers[half:]:
            self.sync(group_id, reply.member_id, reply.generation)

    def form(self, group_id: GroupId, size: int) -> list[MemberId]:
        member_ids = [MemberId(f"{group_id}-{number:04}-6b2f9d1c8f0e") for number in range(size)]
        for member_id in member_ids:
            self.join(group_id, member_id, is_new=True, which=0)
        key = TimerKey(TimerKind.INITIAL_DELAY, group_id)
        joined = self.do(TimerFired(key=key))
        if not joined.replies:
            joined = self.do(TimerFired(key=key))
        self.sync_all(group_id, joined)
        return member_ids


def turns(world: World, build: Callable[[GroupId, MemberId], Command]) -> Callable[[], object]:
    """One command by the next member of a hundred groups of ten, in rotation."""
    groups = [GroupId(f"group-{number}") for number in range(100)]
    members = [(group_id, each) for group_id in groups for each in world.form(group_id, 10)]
    place = -1

    def turn() -> Outcome:
        nonlocal place
        place = (place + 1) % len(members)
        return world.do(build(*members[place]))

    return turn


def heartbeats(world: World) -> Callable[[], object]:
    return turns(world, partial(heartbeat, world))


def heartbeat(world: World, group_id: GroupId, member_id: MemberId) -> Heartbeat:
    return Heartbeat(
        ticket=world.next_ticket(),
        group_id=group_id,
        member_id=member_id,
        generation=Generation(1),
    )


def commits(world: World) -> Callable[[], object]:
    return turns(world, partial(commit, world))


def commit(world: World, group_id: GroupId, member_id: MemberId) -> CommitOffsets:
    offsets = tuple(
        OffsetToCommit(
            topic=TOPIC, partition=Partition(number), offset=Offset(1_000), leader_epoch=3
        )
        for number in PARTITIONS
    )
    return CommitOffsets(
        ticket=world.next_ticket(),
        group_id=group_id,
        member_id=member_id,
        generation=Generation(1),
        offsets=offsets,
    )


def rebalances(size: int) -> Callable[[], object]:
    world, group_id = World(), GroupId("group")
    member_ids = world.form(group_id, size)
    which = 0

    def rebalance() -> None:
        nonlocal which
        which = 1 - which
        joined = Outcome([], [], {}, [])
        # The leader is not the one that begins: joining again would be enough for it.
        for member_id in reversed(member_ids):
            joined = world.join(group_id, member_id, is_new=False, which=which)
        world.sync_all(group_id, joined)

    return rebalance


def median_us(work: Callable[[], object], rounds: int) -> float:
    count = calls_per_round(work)
    return statistics.median(cpu_seconds(work, count) / count * 1e6 for _ in range(rounds))


def measure(effort: Effort) -> Iterator[Result]:
    for metric, work, per_second in (
        ("heartbeat", heartbeats(World()), HEARTBEATS_PER_SECOND),
        (f"commit of {len(PARTITIONS)} partitions", commits(World()), COMMITS_PER_SECOND),
    ):
        cost = median_us(work, effort.rounds)
        yield Result(metric=metric, kohort=cost, peer=1e6 / per_second, target=1.0)
    sizes = effort.pick(GROUP_SIZES, GROUP_SIZES[:2])
    times = max(3, effort.rounds // 5)
    costs = {size: median_us(rebalances(size), times) / size for size in sizes}
    for size, cost in costs.items():
        metric = f"rebalance of {size:_}, per member"
        target = GROWTH_MAX if size > SMALL else None
        yield Result(metric=metric, kohort=cost, peer=costs[SMALL], target=target)
    many = effort.pick(MANY_GROUPS, MANY_GROUPS // 100)
    yield Result(
        metric=f"{many:_} groups of {MEMBERS_EACH}, {len(PARTITIONS)} offsets each",
        kohort=measured_memory_mb(many),
        peer=MEMORY_MB * many / MANY_GROUPS,
        target=1.0,
        unit="MB",
    )


def measured_memory_mb(groups: int) -> float:
    """Measured in a separate process."""
    command = [sys.executable, "-m", "bench.coordinator", "--memory", str(groups)]
    finished = subprocess.run(command, capture_output=True, check=True, text=True)  # ourselves
    return float(finished.stdout)


def memory_mb(groups: int) -> float:
    """How much the process grows while groups are created one by one."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    world = World()
    for number in range(groups):
        group_id = GroupId(f"group-{number}")
        leader, *_ = world.form(group_id, MEMBERS_EACH)
        world.do(commit(world, group_id, leader))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


if __name__ == "__main__":
    if "--memory" in sys.argv:
        sys.stdout.write(f"{memory_mb(int(sys.argv[-1]))}\n")
    else:
        tell(__doc__ or "", "target", measure)
