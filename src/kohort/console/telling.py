"""What pages say in words: of a rebalance, of a group's state, of what cannot be known. Pure."""

from collections.abc import Sequence
from typing import Final

from kohort.admin.picture import Member, Need, Overview, Party, Rebalance
from kohort.admin.picture.ownership import find_moves
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.forensics.report.words import TRIGGERS, count, duration, listed

NEEDS: Final = {Need.NOW: "needs you", Need.SOON: "look", Need.NONE: "quiet"}

KIND_OF_TRIGGER: Final = {
    "member-joined": "came",
    "instance-restarted": "came",
    "member-left": "went",
    "member-removed": "went",
    "subscription-changed": "changed",
    "leader-rejoined": "changed",
    "protocol-changed": "changed",
}
"""How a rebalance is drawn; anything else is a failure, and None is not known."""

NOT_KNOWN: Final = "not known here"

ONLY_EVENTS: Final = (
    "This cluster writes no events of its groups (__kohort_events), so a rebalance is the "
    "difference of two generations in __consumer_offsets: who came, who went and what moved. What "
    "began it, how long it took and what clients gave as their reason cannot be known here."
)


def headline(overview: Overview) -> str:
    if not overview.groups:
        return "There are no groups yet."
    needs = dict(overview.needs)
    now, soon = needs.get(Need.NOW, 0), needs.get(Need.SOON, 0)
    groups = count(overview.groups, "group")
    if now:
        more = f", {soon:,} more {'deserves' if soon == 1 else 'deserve'} a look" if soon else ""
        return f"{now:,} of {groups} {'needs' if now == 1 else 'need'} you now{more}."
    if soon:
        return (
            f"{soon:,} of {groups} {'deserves' if soon == 1 else 'deserve'} a look; "
            "nothing is urgent."
        )
    return "The one group is quiet." if overview.groups == 1 else f"All {groups} are quiet."


def who(party: Party) -> str:
    """Whom people know: the name that stays, else the program."""
    return party.instance_id or party.client_id or party.member_id


def kind_of(rebalance: Rebalance) -> str:
    if rebalance.trigger is None:
        return "unknown"
    return KIND_OF_TRIGGER.get(rebalance.trigger, "failed")


def why(rebalance: Rebalance) -> str:
    """What began it, in half a sentence."""
    if rebalance.trigger is None:
        return _difference(rebalance)
    return TRIGGERS.get(rebalance.trigger, rebalance.trigger.replace("-", " "))


def _difference(rebalance: Rebalance) -> str:
    if rebalance.generation_before is None:
        return f"the first generation seen from here; what began it is {NOT_KNOWN}"
    came, gone = len(rebalance.newcomers), len(rebalance.removals)
    moved = len(find_moves(rebalance))
    said = []
    if gone:
        said.append(f"{count(gone, 'member')} went")
    if came:
        said.append(f"{count(came, 'member')} came")
    if moved:
        said.append(f"{count(moved, 'partition')} moved")
    words = listed(said) if said else "nothing moved"
    return f"{words}; what began it is {NOT_KNOWN}"


_MEMBER_ID_REASON: Final = "need to re-join with the given member-id"
"""What clients say by themselves when they have just been given their id: it explains nothing."""


def given_reason(rebalance: Rebalance) -> str:
    reason = rebalance.client_reason or ""
    return "" if reason.startswith(_MEMBER_ID_REASON) else reason


def took(rebalance: Rebalance) -> str:
    if rebalance.started_ms is None or rebalance.ended_ms is None:
        return "" if rebalance.ended_ms is not None else "under way"
    return duration(rebalance.ended_ms - rebalance.started_ms)


def moved(rebalance: Rebalance) -> str:
    """How many partitions have another owner than before."""
    is_known = rebalance.ended_ms is not None and all(
        each.had is not None for each in rebalance.participants
    )
    return f"{len(find_moves(rebalance)):,}" if is_known else "\u2013"


def dealt(rebalance: Rebalance) -> int:
    """How many partitions were given out."""
    return sum(len(each.got or ()) for each in rebalance.participants)


def story(rebalance: Rebalance) -> list[str]:
    """The whole of one, sentence by sentence."""
    said = [_beginning(rebalance)]
    if reason := given_reason(rebalance):
        said.append(f"The client gave as its reason: “{reason}”.")
    if rebalance.ended_ms is None:
        waited = len(rebalance.waited_for)
        said.append(f"It is under way; {count(waited, 'member')} had to join again.")
        return said
    if rebalance.joined_ms is not None and rebalance.started_ms is not None:
        said.append(_joining(rebalance))
    said.append(_end(rebalance))
    if rebalance.removals:
        gone = [who(each.party) for each in rebalance.removals[:5]]
        more = len(rebalance.removals) - len(gone)
        rest = f" and {more} more" if more else ""
        said.append(f"Out in the course of it: {', '.join(gone)}{rest}.")
    return said


def _beginning(rebalance: Rebalance) -> str:
    if rebalance.trigger is None:
        known = _difference(rebalance)
        return f"{known[0].upper()}{known[1:]}."
    reason = why(rebalance)
    culprit = "" if rebalance.culprit is None else f": {who(rebalance.culprit)}"
    before = f" The group was {rebalance.state_before}." if rebalance.state_before else ""
    return f"It began because {reason}{culprit}.{before}"


_JOIN_ENDED: Final = {
    "all-joined": "when everybody had joined",
    "timeout": "because the time to join was over",
    "initial-delay": "when the wait for a starting fleet was over",
}


def _joining(rebalance: Rebalance) -> str:
    assert rebalance.joined_ms is not None
    assert rebalance.started_ms is not None
    because = _JOIN_ENDED.get(rebalance.join_ended_by or "", "")
    waited = duration(rebalance.joined_ms - rebalance.started_ms)
    said = f"The join phase took {waited} and ended {because}".rstrip() + "."
    joins = [each for each in rebalance.participants if each.join_took_ms is not None]
    slowest = max(joins, key=lambda each: each.join_took_ms or 0, default=None)
    if slowest is not None and len(joins) > 1 and (slowest.join_took_ms or 0) >= 1000:
        said += (
            f" {who(slowest.party)} was waited for longest: {duration(slowest.join_took_ms or 0)}."
        )
    return said


def _end(rebalance: Rebalance) -> str:
    members = count(len(rebalance.participants), "member")
    moves = len(find_moves(rebalance))
    moved = f"{count(moves, 'partition')} moved" if moves else "nothing moved"
    if rebalance.generation_before is None and not rebalance.is_exact:
        moved = "what moved is not known"
    match rebalance.ending:
        case "stable":
            by = f" under {rebalance.protocol}" if rebalance.protocol else ""
            return f"Generation {rebalance.generation} was formed with {members}{by}; {moved}."
        case "empty":
            return "Nobody was left."
        case "interrupted":
            return "Another rebalance began before this one was done."
        case "abandoned":
            return "The broker stopped in the middle of it."
        case _:
            return ""


def places(partitions: Sequence[TopicPartition] | None) -> str:
    """orders 0-3, 7; refunds 1."""
    if partitions is None:
        return NOT_KNOWN
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return "; ".join(f"{topic} {_runs(sorted(numbers))}" for topic, numbers in by_topic.items())


def _runs(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for each in numbers:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return ", ".join(
        f"{a}" if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs
    )


def idle(members: Sequence[Member]) -> int:
    """Members that hold nothing: they wait for another one to fail."""
    return sum(each.holds == () for each in members)


CLASSIC_STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")

STATE_WORDS: Final = {
    "Empty": "no members",
    "PreparingRebalance": "members are joining",
    "CompletingRebalance": "waiting for the assignment",
    "Stable": "everybody has their share",
    "Dead": "removed",
    "Assigning": "the broker works out who gets what",
    "Reconciling": "members hand partitions over",
}

STATE_TONES: Final = {
    "Stable": "good",
    "Empty": "idle",
    "Dead": "idle",
    "PreparingRebalance": "moving",
    "CompletingRebalance": "moving",
    "Assigning": "moving",
    "Reconciling": "moving",
}
