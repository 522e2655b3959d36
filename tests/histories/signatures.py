"""The signature of each pathology in a history, found without the labels.

These are simpler than findings: they only separate groups with the pathology from all others.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from kohort.coordinator.records import OffsetRemoved
from tests.histories.reader import GroupHistory, assigned_to, subscribed_topics

MINUTE = 60_000


def rebalances_often(history: GroupHistory) -> bool:
    """30 rebalances in 30 minutes."""
    ends = [each["at"] for each in history.events_named("rebalance-ended")]
    return any(later - first < 30 * MINUTE for first, later in zip(ends, ends[29:], strict=False))


def waits_for_one_member(history: GroupHistory) -> bool:
    """In several rebalances one member joins half a minute after all others."""
    late: Counter[str] = Counter()
    for event in history.events_named("rebalance-ended"):
        took = sorted(
            (each["join_took_ms"] or 0, each["party"]["client_id"])
            for each in event["participants"]
        )
        if len(took) > 2 and took[-1][0] > took[-2][0] + 30_000:
            late[took[-1][1]] += 1
    return any(times > 2 for times in late.values())


def exceeds_poll_interval(history: GroupHistory) -> bool:
    reasons = [each["client_reason"] or "" for each in history.events_named("member-gone")]
    return sum("poll timeout" in reason for reason in reasons) > 2


def sessions_expire_repeatedly(history: GroupHistory) -> bool:
    """The sessions of one client expire, and it rejoins with another member id."""
    return _expirations_max(history) > 2


def crashes_after_each_start(history: GroupHistory) -> bool:
    """Five memberships of one client on one host expire within two minutes of their start."""
    joined = {
        each["party"]["member_id"]: each["at"] for each in history.events_named("member-joined")
    }
    short: Counter[tuple[str, str]] = Counter()
    for event in history.events_named("member-gone"):
        party = event["party"]
        is_short = event["at"] - joined.get(party["member_id"], 0) < 2 * MINUTE
        if is_short and event["departure"] in ("session-expired", "not-rejoined"):
            short[party["client_id"], party["client_host"]] += 1
    return any(times >= 5 for times in short.values())


def restarts_in_a_row(history: GroupHistory) -> bool:
    """Five rebalances within five minutes because a dynamic member left."""
    left = [
        each["started_ms"]
        for each in history.events_named("rebalance-ended")
        if each["trigger"] == "member-left" and each["ending"] == "stable"
    ]
    return any(later - first < 5 * MINUTE for first, later in zip(left, left[4:], strict=False))


def leader_rejoins(history: GroupHistory) -> bool:
    triggers = [each["trigger"] for each in history.events_named("rebalance-ended")]
    return triggers.count("leader-rejoined") > 10


def stops_for_each_restart(history: GroupHistory) -> bool:
    """At least 10 eager members stop for at least 10 s, at least 5 times."""
    long = [
        each
        for each in history.events_named("rebalance-ended")
        if each["protocol"] == "range"
        and len(each["participants"]) >= 10
        and each["at"] - each["started_ms"] > 10_000
        and each["generation_before"] > 0
    ]
    return len(long) >= 5


def has_members_without_partitions(history: GroupHistory) -> bool:
    return any(
        sum(not assigned_to(member) for member in formed.members) > 2
        for _, formed in history.generations
        if formed.protocol_type == "consumer"
    )


def waits_for_an_assignment(history: GroupHistory) -> bool:
    return any(
        each["join_ended_ms"] is not None and each["at"] - each["join_ended_ms"] > 5 * MINUTE
        for each in history.events_named("rebalance-ended")
    )


def waits_for_joins(history: GroupHistory) -> bool:
    return any(
        each["join_ended_ms"] is not None
        and each["join_ended_ms"] - each["started_ms"] > 5 * MINUTE
        for each in history.events_named("rebalance-ended")
    )


def stops_committing_with_members(history: GroupHistory) -> bool:
    """The group has members, committed before, and did not commit in the last 30 minutes."""
    if not history.commits or not history.generations:
        return False
    _, last = history.generations[-1]
    is_moving = any(step for _, step in history.steps())
    return bool(last.members) and is_moving and _end(history) - history.commits[-1][0] > 30 * MINUTE


def members_subscribe_to_different_topics(history: GroupHistory) -> bool:
    """For at least 10 minutes."""
    formed = [each for each in history.generations if each[1].protocol_type == "consumer"]
    ends = [*(at for at, _ in formed[1:]), _end(history)]
    return any(
        len({frozenset(subscribed_topics(member)) for member in generation.members}) > 1
        and end - at > 10 * MINUTE
        for (at, generation), end in zip(formed, ends, strict=False)
    )


def no_longer_subscribes_to_a_topic(history: GroupHistory) -> bool:
    """At the end of the history no member subscribes to a topic with committed offsets."""
    if not history.generations or not history.generations[-1][1].members:
        return False
    _, last = history.generations[-1]
    if last.protocol_type != "consumer":
        return False
    subscribed = set[str]().union(*map(subscribed_topics, last.members))
    return bool({commit.topic for _, commit in history.commits} - subscribed)


def offsets_alternate(history: GroupHistory) -> bool:
    """Offsets fall and rise in turn, because two members commit them."""
    back = [at for at, step in history.steps() if step < 0]
    return len(back) > 50


def rewinds_while_running(history: GroupHistory) -> bool:
    """Offsets fall a few times while the group has members."""
    back = [at for at, step in history.steps() if step < 0]
    return 0 < len(back) <= 50 and any(_has_members(history, at) for at in back)


def loses_offsets(history: GroupHistory) -> bool:
    """The offsets are removed, and the group commits again later."""
    removed = [at for at, each in history.removals if isinstance(each, OffsetRemoved)]
    return bool(removed) and history.commits[-1][0] > removed[-1]


SIGNATURES: Mapping[str, Callable[[GroupHistory], bool]] = {
    "rebalance-storm": rebalances_often,
    "slow-member": waits_for_one_member,
    "evicted-by-poll-interval": exceeds_poll_interval,
    "evicted-by-session-timeout": sessions_expire_repeatedly,
    "crash-loop": crashes_after_each_start,
    "deploy-in-a-row": restarts_in_a_row,
    "leader-rejoin-loop": leader_rejoins,
    "eager-cost": stops_for_each_restart,
    "too-many-members": has_members_without_partitions,
    "stuck-rebalance": waits_for_an_assignment,
    "stuck-join": waits_for_joins,
    "stuck-consumer": stops_committing_with_members,
    "subscription-mismatch": members_subscribe_to_different_topics,
    "unowned-topic": no_longer_subscribes_to_a_topic,
    "zombie-commits": offsets_alternate,
    "offset-rewind": rewinds_while_running,
    "expired-offsets": loses_offsets,
}


def _expirations_max(history: GroupHistory) -> int:
    expired = Counter(
        each["party"]["client_id"]
        for each in history.events_named("member-gone")
        if each["departure"] == "session-expired"
    )
    return max(expired.values(), default=0)


def _has_members(history: GroupHistory, at: int) -> bool:
    before = [formed for when, formed in history.generations if when <= at]
    return bool(before) and bool(before[-1].members)


def _end(history: GroupHistory) -> int:
    """The end of the history, which is two hours long."""
    first = history.generations[0][0] if history.generations else history.commits[0][0]
    return first - first % (60 * MINUTE) + 120 * MINUTE
