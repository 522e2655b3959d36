"""Generates a plan from a seed.

Swarm testing: each run enables only a few kinds of faults. With all of them enabled, frequent node
crashes would hide bugs that need a node that runs for long.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from kohort.sim.network import NetworkConditions
from kohort.sim.plan import (
    CommitMode,
    EventKind,
    MemberPlan,
    PlannedEvent,
    ProducerPlan,
    SimulationPlan,
    topic_name,
)
from kohort.virtual_time.rng import RandomStreams

CALM: Final = NetworkConditions(
    delay_ms_min=0.1, delay_ms_max=2, stall_chance=0, stall_ms_max=0, split_chance=0.05
)
FAIR: Final = NetworkConditions(
    delay_ms_min=1, delay_ms_max=30, stall_chance=0, stall_ms_max=0, split_chance=0.1
)
ROUGH: Final = NetworkConditions(
    delay_ms_min=1, delay_ms_max=120, stall_chance=0.03, stall_ms_max=900, split_chance=0.2
)
FOUL: Final = NetworkConditions(
    delay_ms_min=5, delay_ms_max=300, stall_chance=0.08, stall_ms_max=4000, split_chance=0.4
)

_ASSIGNORS: Final = (
    ("range",),
    ("roundrobin",),
    ("sticky",),
    ("cooperative-sticky",),
    ("cooperative-sticky",),
    ("range", "cooperative-sticky"),
)

_NODE: Final = (
    EventKind.NODE_KILL,
    EventKind.NODE_POWER,
    EventKind.NODE_STOP,
    EventKind.DISK_FULL,
    EventKind.SYNC_FAILS,
    EventKind.SYNC_SLOW,
    EventKind.CLOCK_JUMP,
)
_CLIENT: Final = (EventKind.CUT, EventKind.SILENCE, EventKind.STALL)
_MEMBER: Final = (
    EventKind.CRASH,
    EventKind.VANISH,
    EventKind.PAUSE,
    EventKind.BUSY,
    EventKind.LEAVE,
    EventKind.SUBSCRIBE,
    EventKind.REJOIN,
    EventKind.TWIN,
    EventKind.GHOST,
    EventKind.PIPELINE,
)
_ALL: Final = (*_NODE, *_CLIENT, *_MEMBER, EventKind.GROW)

_THEMES: Final = (
    (EventKind.LEAVE, EventKind.SUBSCRIBE, EventKind.REJOIN, EventKind.GROW),
    # Members whose session times out and that come back.
    (EventKind.PAUSE, EventKind.STALL, EventKind.BUSY, EventKind.SILENCE, EventKind.GHOST),
    # Requests that are pipelined behind fetches of `__consumer_offsets`.
    (EventKind.PIPELINE, EventKind.REJOIN, EventKind.PIPELINE, EventKind.CRASH),
    # Members and the node crash at the same time.
    (EventKind.CRASH, EventKind.VANISH, EventKind.TWIN, EventKind.NODE_KILL, EventKind.NODE_POWER),
    # Everything that can damage data on disk.
    (
        EventKind.NODE_POWER,
        EventKind.NODE_KILL,
        EventKind.NODE_STOP,
        EventKind.SYNC_FAILS,
        EventKind.DISK_FULL,
    ),
)

_CLOCK_STEPS_MS: Final = (
    *(-7_200_000, -600_000, -120_000, -5_000),
    *(5_000, 60_000, 600_000, 10_800_000),
)
_SUSPENSIONS_MS: Final = (2_000, 4_000, 9_000, 20_000, 55_000)
"""Longer than what counts of a suspension, and some longer than every session."""

_TIME_EVENTS_FROM: Final = 1_000
"""Their first number; all other events have lower ones."""

_LONG: Final = frozenset({EventKind.STALL, EventKind.PAUSE, EventKind.BUSY})
"""Matter most when they are longer than session.timeout.ms or max.poll.interval.ms."""


def draw_plan(seed: int) -> SimulationPlan:
    streams = RandomStreams(seed)
    rng = streams.named("plan")
    topics = tuple(rng.choice((1, 2, 3, 4)) for _ in range(rng.choice((1, 1, 2, 3))))
    members = _draw_members(rng, len(topics))
    producers = _draw_producers(rng)
    faulty_ms = rng.choice((4_000, 8_000, 15_000, 25_000))
    return SimulationPlan(
        seed=seed,
        durability=rng.choice(("fsync", "fsync", "os")),
        faulty_ms=faulty_ms,
        topics=topics,
        segment_bytes=rng.choice((0, 0, 700, 3000)),
        offsets_partitions=rng.choice((1, 1, 3)),
        initial_delay_ms=rng.choice((0, 0, 100, 1500)),
        housekeeping_ms=rng.choice((700, 3_000, 10_000)),
        idle_ms=rng.choice((20_000, 600_000)),
        sync_ms=rng.choice(((0.1, 1), (0.5, 8), (5, 60))),
        conditions=rng.choice((CALM, FAIR, FAIR, ROUGH, FOUL)),
        members=members,
        producers=producers,
        events=_in_order(
            *_draw_events(streams.named("decisions"), members, producers, topics, faulty_ms),
            *_draw_time_events(streams.named("time"), faulty_ms),
        ),
        last_victim=_draw_victim(streams.named("victim"), members),
    )


def _draw_members(rng: Random, topic_count: int) -> tuple[MemberPlan, ...]:
    count = rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 8))
    groups = ("g", "h") if count > 3 and rng.random() < 0.2 else ("g",)
    assignors = {group: rng.choice(_ASSIGNORS) for group in groups}
    static_chance = rng.choice((0, 0, 0.5, 1))
    everything = (1 << topic_count) - 1
    starts = rng.choice((0, 100, 3_000))
    members = []
    for index in range(count):
        name = f"m{index}"
        group = rng.choice(groups) if index else groups[0]
        session_ms = rng.choice((1_000, 1_000, 2_000, 4_000, 10_000))
        max_poll_ms = rng.choice((2_000, 6_000, 20_000))
        record_ms = rng.choice((0.1, 5, 40))
        # Within max.poll.interval.ms, unless an event delays it.
        batch_max = min(rng.choice((2, 5, 20, 500)), int(max_poll_ms / 3 / record_ms))
        is_static = rng.random() < static_chance
        members.append(
            MemberPlan(
                name=name,
                group=group,
                start_ms=rng.randint(0, starts),
                topics=everything if rng.random() < 0.8 else rng.randint(1, everything),
                instance_id=f"i-{name}" if is_static else None,
                assignors=assignors[group],
                commits=rng.choice(tuple(CommitMode)),
                commit_interval_ms=rng.choice((200, 1_000, 5_000)),
                session_ms=session_ms,
                heartbeat_ms=min(session_ms // rng.choice((3, 4)), max_poll_ms // 4),
                max_poll_ms=max_poll_ms,
                request_ms=rng.choice((1_000, 3_000, 10_000)),
                batch_max=batch_max,
                record_ms=record_ms,
                fetch_wait_ms=rng.choice((300, 1_000, 3_000)),
                is_old=rng.random() < 0.15,
            )
        )
    return tuple(members)


def _draw_victim(rng: Random, members: tuple[MemberPlan, ...]) -> str:
    """A member with others in its group and a short session."""
    victim = rng.choice(members)
    others = [each for each in members if each.group == victim.group and each is not victim]
    is_missed = bool(others) and victim.session_ms <= 2_000
    return victim.name if is_missed and rng.random() < 0.6 else ""


def _draw_producers(rng: Random) -> tuple[ProducerPlan, ...]:
    return tuple(
        ProducerPlan(
            name=f"p{index}",
            is_idempotent=rng.random() < 0.6,
            acks=-1 if rng.random() < 0.9 else 1,
            interval_ms=rng.choice((150, 400, 1_500)),
            records_max=rng.choice((1, 3, 8)),
        )
        for index in range(rng.choice((1, 1, 2)))
    )


def _draw_events(
    rng: Random,
    members: tuple[MemberPlan, ...],
    producers: tuple[ProducerPlan, ...],
    topics: tuple[int, ...],
    faulty_ms: int,
) -> tuple[PlannedEvent, ...]:
    temper = rng.random()
    if temper < 0.08:
        return ()
    if temper < 0.5:
        kinds: Sequence[EventKind] = rng.choice(_THEMES)
    else:
        kinds = rng.sample(_ALL, rng.choice((1, 2, 3, 5, 8)))
    drawn = []
    for number in range(rng.choice((2, 4, 7, 12, 20))):
        at_ms = rng.randint(50, faulty_ms)
        kind = rng.choice(kinds)
        target = _draw_target(rng, kind, members, producers, topics)
        amount = _draw_amount(rng, kind, len(topics))
        operations = 0
        if kind in (EventKind.NODE_KILL, EventKind.NODE_POWER) and rng.random() < 0.5:
            operations = rng.choice((1, 2, 3, 5, 10, 30))
        drawn.append(
            PlannedEvent(
                number=number,
                at_ms=at_ms,
                kind=kind,
                target=target,
                amount=amount,
                operations=operations,
            )
        )
    return tuple(drawn)


def _draw_time_events(rng: Random, faulty_ms: int) -> Iterator[PlannedEvent]:
    """Clock steps and suspensions, in a third of all plans. They have a stream of their own, so
    that the rest of a plan does not depend on them."""
    if rng.random() > 1 / 3:
        return
    kinds = rng.choice(
        (
            (EventKind.CLOCK_JUMP,),
            (EventKind.NODE_SUSPEND,),
            (EventKind.CLOCK_JUMP, EventKind.NODE_SUSPEND),
        )
    )
    for number in range(rng.choice((1, 2, 4))):
        kind = rng.choice(kinds)
        is_step = kind is EventKind.CLOCK_JUMP
        yield PlannedEvent(
            number=_TIME_EVENTS_FROM + number,
            at_ms=rng.randint(50, faulty_ms),
            kind=kind,
            amount=rng.choice(_CLOCK_STEPS_MS if is_step else _SUSPENSIONS_MS),
        )


def _in_order(*events: PlannedEvent) -> tuple[PlannedEvent, ...]:
    return tuple(sorted(events, key=lambda event: event.at_ms))


def _draw_target(
    rng: Random,
    kind: EventKind,
    members: tuple[MemberPlan, ...],
    producers: tuple[ProducerPlan, ...],
    topics: tuple[int, ...],
) -> str:
    if kind in _NODE:
        return ""
    if kind is EventKind.GROW:
        return topic_name(rng.randrange(len(topics)))
    names = [member.name for member in members]
    if kind in _CLIENT:
        names += [producer.name for producer in producers]
    return rng.choice(names)


def _draw_amount(rng: Random, kind: EventKind, topic_count: int) -> int:
    if kind is EventKind.SUBSCRIBE:
        return rng.randint(1, (1 << topic_count) - 1)
    if kind is EventKind.GROW:
        return rng.choice((1, 1, 2))
    if kind in (EventKind.GHOST, EventKind.PIPELINE):
        return rng.randint(1, 1_000)
    if kind is EventKind.CLOCK_JUMP:
        return rng.choice((-40, 15, 900, 5_000, 60_000))
    if kind in (EventKind.CRASH, EventKind.VANISH, EventKind.LEAVE):
        return rng.choice((0, 0, 20, 500, 3_000, 9_000))
    if kind in _LONG:
        return rng.choice((300, 1_500, 4_000, 12_000))
    return rng.choice((10, 200, 1_000, 4_000))
