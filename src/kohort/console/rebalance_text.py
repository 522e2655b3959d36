"""Text of the console's pages: rebalances, states, and what a cluster does not record. Pure."""

from collections.abc import Sequence
from typing import Final

from kohort.admin.group_monitor import ClusterOverview, MonitoredMember, ObservedRebalance, Status
from kohort.admin.group_monitor.partition_ownership import find_moves
from kohort.events.schema import EventMember
from kohort.text import rebalances as words
from kohort.text.numbers import count, duration, joined, ranges_by_topic
from kohort.text.rebalances import ENDINGS, client_reason, member_name
from kohort.types import TopicPartition

KIND_OF_TRIGGER: Final = {
    "member-joined": "joined",
    "instance-restarted": "joined",
    "member-left": "left",
    "member-removed": "left",
    "subscription-changed": "changed",
    "leader-rejoined": "changed",
    "protocol-changed": "changed",
}
"""The kind of a rebalance by trigger: `failed` for others, `unknown` without trigger."""

UNKNOWN: Final = "unknown"

CAUSE_NOT_RECORDED: Final = "This broker does not record the cause."

WITHOUT_EVENTS: Final = (
    "This cluster has no topic __kohort_events, so each rebalance is derived from two generations "
    "in __consumer_offsets. Members that joined or left and reassigned partitions are known. The "
    "trigger, the duration and the clients' reasons are not recorded."
)

_NAMES_MAX: Final = 3


def headline(overview: ClusterOverview) -> str:
    statuses = dict(overview.statuses)
    return words.headline(
        groups=overview.groups,
        critical=statuses.get(Status.CRITICAL, 0),
        warnings=statuses.get(Status.WARNING, 0),
    )


def kind_of(rebalance: ObservedRebalance) -> str:
    if rebalance.trigger is None:
        return "unknown"
    return KIND_OF_TRIGGER.get(rebalance.trigger, "failed")


def why(rebalance: ObservedRebalance) -> str:
    """The cause as a clause; without events, the changes."""
    if rebalance.trigger is None:
        return _changes(rebalance)
    return words.cause(rebalance.trigger)


def _changes(rebalance: ObservedRebalance) -> str:
    """ "checkout-3 left; 1 partition was reassigned"."""
    if rebalance.generation_before is None:
        return "first generation that the console has seen"
    new = frozenset(rebalance.newcomers)
    joined_members = [each.party for each in rebalance.participants if each.party.member_id in new]
    members = []
    if rebalance.removals:
        members.append(f"{_names([each.party for each in rebalance.removals])} left")
    if joined_members:
        members.append(f"{_names(joined_members)} joined")
    return "; ".join([*([", ".join(members)] if members else []), _moves(rebalance)])


def _names(parties: Sequence[EventMember]) -> str:
    if len(parties) > _NAMES_MAX:
        return count(len(parties), "member")
    return joined([member_name(each) for each in parties])


def _moves(rebalance: ObservedRebalance) -> str:
    moves = len(find_moves(rebalance))
    if not moves:
        return "no partition was reassigned"
    return f"{count(moves, 'partition')} {'was' if moves == 1 else 'were'} reassigned"


def took(rebalance: ObservedRebalance) -> str:
    if rebalance.started_ms is None or rebalance.ended_ms is None:
        return "" if rebalance.ended_ms is not None else "in progress"
    return duration(rebalance.ended_ms - rebalance.started_ms)


def moved(rebalance: ObservedRebalance) -> str:
    """The number of partitions whose owner changed."""
    is_known = rebalance.ended_ms is not None and all(
        each.had is not None for each in rebalance.participants
    )
    return f"{len(find_moves(rebalance)):,}" if is_known else "\u2013"


def partition_count(rebalance: ObservedRebalance) -> int:
    """The number of assigned partitions."""
    return sum(len(each.got or ()) for each in rebalance.participants)


def summary(rebalance: ObservedRebalance) -> list[str]:
    """The whole rebalance, sentence by sentence."""
    sentences = [_cause(rebalance)]
    if reason := client_reason(rebalance.client_reason):
        sentences.append(f"Reason given by the client: “{reason}”.")
    if rebalance.ended_ms is None:
        waited = len(rebalance.waited_for)
        sentences.append(f"The rebalance is in progress; {count(waited, 'member')} must rejoin.")
        return sentences
    if rebalance.joined_ms is not None and rebalance.started_ms is not None:
        sentences.append(_join_phase(rebalance))
    sentences.append(_end(rebalance))
    if rebalance.removals and rebalance.trigger is not None:
        names = [member_name(each.party) for each in rebalance.removals[:5]]
        more = len(rebalance.removals) - len(names)
        rest = f" and {more} more" if more else ""
        sentences.append(f"Left or removed during the rebalance: {', '.join(names)}{rest}.")
    return sentences


def _cause(rebalance: ObservedRebalance) -> str:
    if rebalance.trigger is None:
        changes = _changes(rebalance)
        return f"{changes[0].upper()}{changes[1:]}. {CAUSE_NOT_RECORDED}"
    who = None if rebalance.initiator is None else member_name(rebalance.initiator)
    cause = words.cause(rebalance.trigger, who)
    before = f" The group was {rebalance.state_before}." if rebalance.state_before else ""
    return f"Cause: {cause}.{before}"


_JOIN_ENDED: Final = {
    "all-joined": "when all members had joined",
    "timeout": "at the rebalance timeout",
    "initial-delay": "after the initial rebalance delay",
}


def _join_phase(rebalance: ObservedRebalance) -> str:
    assert rebalance.joined_ms is not None
    assert rebalance.started_ms is not None
    when = _JOIN_ENDED.get(rebalance.join_ended_by or "", "")
    took_ms = duration(rebalance.joined_ms - rebalance.started_ms)
    sentence = f"The join phase took {took_ms}" + (f" and ended {when}." if when else ".")
    joins = [each for each in rebalance.participants if each.join_took_ms is not None]
    slowest = max(joins, key=lambda each: each.join_took_ms or 0, default=None)
    if slowest is not None and len(joins) > 1 and (slowest.join_took_ms or 0) >= 1000:
        longest = duration(slowest.join_took_ms or 0)
        sentence += f" The slowest member was {member_name(slowest.party)}: {longest}."
    return sentence


def _end(rebalance: ObservedRebalance) -> str:
    members = count(len(rebalance.participants), "member")
    match rebalance.ending:
        case "stable":
            by = f", assignor {rebalance.protocol}" if rebalance.protocol else ""
            # Without events, the first sentence contains the moves.
            moves = f"; {_moves(rebalance)}" if rebalance.is_exact else ""
            return f"Generation {rebalance.generation} has {members}{by}{moves}."
        case str(ending) if ending in ENDINGS:
            return f"{ENDINGS[ending][0].upper()}{ENDINGS[ending][1:]}."
        case _:
            return ""


def partitions_text(partitions: Sequence[TopicPartition] | None) -> str:
    """orders 0-3, 7; refunds 1."""
    if partitions is None:
        return UNKNOWN
    return "; ".join(f"{topic} {each}" for topic, each in ranges_by_topic(partitions).items())


def idle(members: Sequence[MonitoredMember]) -> int:
    """The number of members without partitions."""
    return sum(each.partitions == () for each in members)


STATE_TEXT: Final = {
    "Empty": "no members",
    "PreparingRebalance": "members are joining",
    "CompletingRebalance": "waiting for the assignment",
    "Stable": "stable",
    "Dead": "removed",
    "Assigning": "the broker computes the assignment",
    "Reconciling": "members revoke and receive partitions",
}

STATE_COLORS: Final = {
    "Stable": "good",
    "Empty": "idle",
    "Dead": "idle",
    "PreparingRebalance": "moving",
    "CompletingRebalance": "moving",
    "Assigning": "moving",
    "Reconciling": "moving",
}
