"""What each pathology looks like in a history, found without the truth: one sign for each kind.

These are no findings: they see just enough to tell a group that has it from one that has not.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from kohort.coordinator.records import OffsetRemoved
from tests.corpus.histories import History, share_of, topics_of

MINUTE = 60_000


def rebalances_all_the_time(history: History) -> bool:
    """Thirty in half an hour."""
    ends = [each["at"] for each in history.named("rebalance-ended")]
    return any(later - first < 30 * MINUTE for first, later in zip(ends, ends[29:], strict=False))


def waits_for_one(history: History) -> bool:
    """Again and again, one member joins half a minute after everyone else."""
    late: Counter[str] = Counter()
    for event in history.named("rebalance-ended"):
        took = sorted(
            (each["join_took_ms"] or 0, each["party"]["client_id"])
            for each in event["participants"]
        )
        if len(took) > 2 and took[-1][0] > took[-2][0] + 30_000:
            late[took[-1][1]] += 1
    return any(times > 2 for times in late.values())


def leaves_for_its_polls(history: History) -> bool:
    gone = [each["client_reason"] or "" for each in history.named("member-gone")]
    return sum("poll timeout" in reason for reason in gone) > 2


def sessions_end_again_and_again(history: History) -> bool:
    """Of one client that comes back under another id."""
    return _most_expired(history) > 2


def dies_soon_after_each_start(history: History) -> bool:
    """Five lives of one client and one machine, each ended by its session within two minutes."""
    born = {each["party"]["member_id"]: each["at"] for each in history.named("member-joined")}
    short: Counter[tuple[str, str]] = Counter()
    for event in history.named("member-gone"):
        party = event["party"]
        is_short = event["at"] - born.get(party["member_id"], 0) < 2 * MINUTE
        if is_short and event["departure"] in ("session-expired", "not-rejoined"):
            short[party["client_id"], party["client_host"]] += 1
    return any(times >= 5 for times in short.values())


def restarts_in_a_row(history: History) -> bool:
    """Within five minutes at least five dynamic clients leave and come back, one after another."""
    left = [
        each["started_ms"]
        for each in history.named("rebalance-ended")
        if each["trigger"] == "member-left" and each["ending"] == "stable"
    ]
    return any(later - first < 5 * MINUTE for first, later in zip(left, left[4:], strict=False))


def leader_rejoins(history: History) -> bool:
    triggers = [each["trigger"] for each in history.named("rebalance-ended")]
    return triggers.count("leader-rejoined") > 10


def stops_for_each_restart(history: History) -> bool:
    """Ten eager members or more, stopped for ten seconds or more, five times or more."""
    long = [
        each
        for each in history.named("rebalance-ended")
        if each["protocol"] == "range"
        and len(each["participants"]) >= 10
        and each["at"] - each["started_ms"] > 10_000
        and each["generation_before"] > 0
    ]
    return len(long) >= 5


def has_members_without_a_share(history: History) -> bool:
    return any(
        sum(not share_of(member) for member in formed.members) > 2
        for _, formed in history.generations
        if formed.protocol_type == "consumer"
    )


def waits_for_an_assignment(history: History) -> bool:
    return any(
        each["join_ended_ms"] is not None and each["at"] - each["join_ended_ms"] > 5 * MINUTE
        for each in history.named("rebalance-ended")
    )


def waits_for_joins(history: History) -> bool:
    return any(
        each["join_ended_ms"] is not None
        and each["join_ended_ms"] - each["started_ms"] > 5 * MINUTE
        for each in history.named("rebalance-ended")
    )


def falls_quiet_with_members(history: History) -> bool:
    """It once committed, and has not in the last half hour, though it has members and records."""
    if not history.commits or not history.generations:
        return False
    _, last = history.generations[-1]
    is_moving = any(step for _, step in history.steps())
    return bool(last.members) and is_moving and _end(history) - history.commits[-1][0] > 30 * MINUTE


def members_want_different_topics(history: History) -> bool:
    """For ten minutes or more."""
    formed = [each for each in history.generations if each[1].protocol_type == "consumer"]
    ends = [*(at for at, _ in formed[1:]), _end(history)]
    return any(
        len({frozenset(topics_of(member)) for member in generation.members}) > 1
        and end - at > 10 * MINUTE
        for (at, generation), end in zip(formed, ends, strict=False)
    )


def leaves_a_topic_behind(history: History) -> bool:
    """A topic that was committed is in nobody's subscription for the rest of the history."""
    if not history.generations or not history.generations[-1][1].members:
        return False
    _, last = history.generations[-1]
    if last.protocol_type != "consumer":
        return False
    wanted = set[str]().union(*map(topics_of, last.members))
    return bool({commit.topic for _, commit in history.commits} - wanted)


def goes_to_and_fro(history: History) -> bool:
    """Offsets that fall and rise by turns: two write them."""
    back = [at for at, step in history.steps() if step < 0]
    return len(back) > 50


def goes_back_while_it_runs(history: History) -> bool:
    """Offsets fall, not many times, while the group has members."""
    back = [at for at, step in history.steps() if step < 0]
    return 0 < len(back) <= 50 and any(_has_members(history, at) for at in back)


def loses_its_offsets(history: History) -> bool:
    """They are removed, and the group comes back."""
    gone = [at for at, each in history.removals if isinstance(each, OffsetRemoved)]
    return bool(gone) and history.commits[-1][0] > gone[-1]


MARKS: Mapping[str, Callable[[History], bool]] = {
    "rebalance-storm": rebalances_all_the_time,
    "slow-member": waits_for_one,
    "evicted-by-poll-interval": leaves_for_its_polls,
    "evicted-by-session-timeout": sessions_end_again_and_again,
    "crash-loop": dies_soon_after_each_start,
    "deploy-in-a-row": restarts_in_a_row,
    "leader-rejoin-loop": leader_rejoins,
    "eager-cost": stops_for_each_restart,
    "too-many-members": has_members_without_a_share,
    "stuck-rebalance": waits_for_an_assignment,
    "stuck-join": waits_for_joins,
    "stuck-consumer": falls_quiet_with_members,
    "subscription-mismatch": members_want_different_topics,
    "unowned-topic": leaves_a_topic_behind,
    "zombie-commits": goes_to_and_fro,
    "offset-rewind": goes_back_while_it_runs,
    "expired-offsets": loses_its_offsets,
}


def _most_expired(history: History) -> int:
    expired = Counter(
        each["party"]["client_id"]
        for each in history.named("member-gone")
        if each["departure"] == "session-expired"
    )
    return max(expired.values(), default=0)


def _has_members(history: History, at: int) -> bool:
    before = [formed for when, formed in history.generations if when <= at]
    return bool(before) and bool(before[-1].members)


def _end(history: History) -> int:
    """The last look at anything; a history of the corpus is two hours long."""
    first = history.generations[0][0] if history.generations else history.commits[0][0]
    return first - first % (60 * MINUTE) + 120 * MINUTE
