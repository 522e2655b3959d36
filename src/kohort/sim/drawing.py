"""A seed becomes a plan.

Every run is drawn from its own swarm: most faults are switched off in most runs, so that those
that are on meet no rescue. Without that, a node that dies every second would hide what happens
when it does not.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from kohort.sim.dice import Dice
from kohort.sim.network import Weather
from kohort.sim.plan import Commits, Decision, Kind, MemberPlan, Plan, ProducerPlan, topic_name

CALM: Final = Weather(
    delay_ms_min=0.1, delay_ms_max=2, stall_chance=0, stall_ms_max=0, split_chance=0.05
)
FAIR: Final = Weather(
    delay_ms_min=1, delay_ms_max=30, stall_chance=0, stall_ms_max=0, split_chance=0.1
)
ROUGH: Final = Weather(
    delay_ms_min=1, delay_ms_max=120, stall_chance=0.03, stall_ms_max=900, split_chance=0.2
)
FOUL: Final = Weather(
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
    Kind.NODE_KILL,
    Kind.NODE_POWER,
    Kind.NODE_STOP,
    Kind.DISK_FULL,
    Kind.SYNC_FAILS,
    Kind.SYNC_SLOW,
    Kind.CLOCK_JUMP,
)
_ANYBODY: Final = (Kind.CUT, Kind.SILENCE, Kind.STALL)
_MEMBER: Final = (
    Kind.CRASH,
    Kind.VANISH,
    Kind.PAUSE,
    Kind.BUSY,
    Kind.LEAVE,
    Kind.SUBSCRIBE,
    Kind.REJOIN,
    Kind.TWIN,
    Kind.GHOST,
)
_ALL: Final = (*_NODE, *_ANYBODY, *_MEMBER, Kind.GROW)

_THEMES: Final = (
    (Kind.LEAVE, Kind.SUBSCRIBE, Kind.REJOIN, Kind.GROW),
    # Members that are taken for dead and come back.
    (Kind.PAUSE, Kind.STALL, Kind.BUSY, Kind.SILENCE, Kind.GHOST),
    # Members that are dead, while their node is as well.
    (Kind.CRASH, Kind.VANISH, Kind.TWIN, Kind.NODE_KILL, Kind.NODE_POWER),
    # Whatever a machine may do to what is written on it.
    (Kind.NODE_POWER, Kind.NODE_KILL, Kind.NODE_STOP, Kind.SYNC_FAILS, Kind.DISK_FULL),
)

_LONG: Final = frozenset({Kind.STALL, Kind.PAUSE, Kind.BUSY})
"""They matter most when they outlast a session or the time between polls."""


def draw_plan(seed: int) -> Plan:
    dice = Dice(seed)
    chance = dice.named("plan")
    topics = tuple(chance.choice((1, 2, 3, 4)) for _ in range(chance.choice((1, 1, 2, 3))))
    members = _draw_members(chance, len(topics))
    producers = _draw_producers(chance)
    faulty_ms = chance.choice((4_000, 8_000, 15_000, 25_000))
    return Plan(
        seed=seed,
        durability=chance.choice(("fsync", "fsync", "os")),
        faulty_ms=faulty_ms,
        topics=topics,
        segment_bytes=chance.choice((0, 0, 700, 3000)),
        offsets_partitions=chance.choice((1, 1, 3)),
        initial_delay_ms=chance.choice((0, 0, 100, 1500)),
        housekeeping_ms=chance.choice((700, 3_000, 10_000)),
        idle_ms=chance.choice((20_000, 600_000)),
        sync_ms=chance.choice(((0.1, 1), (0.5, 8), (5, 60))),
        weather=chance.choice((CALM, FAIR, FAIR, ROUGH, FOUL)),
        members=members,
        producers=producers,
        decisions=_draw_decisions(dice.named("decisions"), members, producers, topics, faulty_ms),
        last_victim=_draw_victim(dice.named("victim"), members),
    )


def _draw_members(chance: Random, topic_count: int) -> tuple[MemberPlan, ...]:
    count = chance.choice((1, 2, 2, 3, 3, 4, 5, 6, 8))
    groups = ("g", "h") if count > 3 and chance.random() < 0.2 else ("g",)
    assignors = {group: chance.choice(_ASSIGNORS) for group in groups}
    static_chance = chance.choice((0, 0, 0.5, 1))
    everything = (1 << topic_count) - 1
    starts = chance.choice((0, 100, 3_000))
    members = []
    for index in range(count):
        name = f"m{index}"
        group = chance.choice(groups) if index else groups[0]
        session_ms = chance.choice((1_000, 1_000, 2_000, 4_000, 10_000))
        max_poll_ms = chance.choice((2_000, 6_000, 20_000))
        record_ms = chance.choice((0.1, 5, 40))
        # In time for the next poll, unless something befalls it.
        batch_max = min(chance.choice((2, 5, 20, 500)), int(max_poll_ms / 3 / record_ms))
        is_static = chance.random() < static_chance
        members.append(
            MemberPlan(
                name=name,
                group=group,
                start_ms=chance.randint(0, starts),
                topics=everything if chance.random() < 0.8 else chance.randint(1, everything),
                instance_id=f"i-{name}" if is_static else None,
                assignors=assignors[group],
                commits=chance.choice(tuple(Commits)),
                commit_interval_ms=chance.choice((200, 1_000, 5_000)),
                session_ms=session_ms,
                heartbeat_ms=min(session_ms // chance.choice((3, 4)), max_poll_ms // 4),
                max_poll_ms=max_poll_ms,
                request_ms=chance.choice((1_000, 3_000, 10_000)),
                batch_max=batch_max,
                record_ms=record_ms,
                fetch_wait_ms=chance.choice((300, 1_000, 3_000)),
                is_old=chance.random() < 0.15,
            )
        )
    return tuple(members)


def _draw_victim(chance: Random, members: tuple[MemberPlan, ...]) -> str:
    """One that leaves others behind, and is missed soon."""
    victim = chance.choice(members)
    others = [each for each in members if each.group == victim.group and each is not victim]
    is_missed = bool(others) and victim.session_ms <= 2_000
    return victim.name if is_missed and chance.random() < 0.6 else ""


def _draw_producers(chance: Random) -> tuple[ProducerPlan, ...]:
    return tuple(
        ProducerPlan(
            name=f"p{index}",
            is_idempotent=chance.random() < 0.6,
            acks=-1 if chance.random() < 0.9 else 1,
            interval_ms=chance.choice((150, 400, 1_500)),
            records_max=chance.choice((1, 3, 8)),
        )
        for index in range(chance.choice((1, 1, 2)))
    )


def _draw_decisions(
    chance: Random,
    members: tuple[MemberPlan, ...],
    producers: tuple[ProducerPlan, ...],
    topics: tuple[int, ...],
    faulty_ms: int,
) -> tuple[Decision, ...]:
    temper = chance.random()
    if temper < 0.08:
        return ()
    if temper < 0.5:
        kinds: Sequence[Kind] = chance.choice(_THEMES)
    else:
        kinds = chance.sample(_ALL, chance.choice((1, 2, 3, 5, 8)))
    drawn = []
    for number in range(chance.choice((2, 4, 7, 12, 20))):
        at_ms = chance.randint(50, faulty_ms)
        kind = chance.choice(kinds)
        target = _draw_target(chance, kind, members, producers, topics)
        amount = _draw_amount(chance, kind, len(topics))
        operations = 0
        if kind in (Kind.NODE_KILL, Kind.NODE_POWER) and chance.random() < 0.5:
            operations = chance.choice((1, 2, 3, 5, 10, 30))
        drawn.append(
            Decision(
                number=number,
                at_ms=at_ms,
                kind=kind,
                target=target,
                amount=amount,
                operations=operations,
            )
        )
    return tuple(sorted(drawn, key=lambda decision: decision.at_ms))


def _draw_target(
    chance: Random,
    kind: Kind,
    members: tuple[MemberPlan, ...],
    producers: tuple[ProducerPlan, ...],
    topics: tuple[int, ...],
) -> str:
    if kind in _NODE:
        return ""
    if kind is Kind.GROW:
        return topic_name(chance.randrange(len(topics)))
    names = [member.name for member in members]
    if kind in _ANYBODY:
        names += [producer.name for producer in producers]
    return chance.choice(names)


def _draw_amount(chance: Random, kind: Kind, topic_count: int) -> int:
    if kind is Kind.SUBSCRIBE:
        return chance.randint(1, (1 << topic_count) - 1)
    if kind is Kind.GROW:
        return chance.choice((1, 1, 2))
    if kind is Kind.GHOST:
        return chance.randint(1, 1_000)
    if kind is Kind.CLOCK_JUMP:
        return chance.choice((-40, 15, 900, 5_000, 60_000))
    if kind in (Kind.CRASH, Kind.VANISH, Kind.LEAVE):
        return chance.choice((0, 0, 20, 500, 3_000, 9_000))
    if kind in _LONG:
        return chance.choice((300, 1_500, 4_000, 12_000))
    return chance.choice((10, 200, 1_000, 4_000))
