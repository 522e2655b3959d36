"""What a caller expects of a group, and what a group lacks of it, in plain words. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kohort.conditions.group_snapshot import DEAD, STABLE, GroupSnapshot
from kohort.text.numbers import count, duration
from kohort.text.rebalances import member_name
from kohort.types import (
    Generation,
    GroupId,
    MemberId,
    Offset,
    Partition,
    Topic,
    TopicPartition,
    value,
)

_LISTED_MAX: Final = 10
"""Partitions and members that a sentence lists; an error message should fit a screen."""


@value
class GroupExpectation:
    """All that is given must hold at the same time; with nothing given, the group must exist."""

    members: int | None = None
    """The exact number of members."""
    state: str | None = None
    stable: bool = False
    """See `GroupSnapshot.is_settled`. `state` is Stable then, or not given."""
    assigned: int | None = None
    """The exact number of assigned partitions of all members."""
    lag: int | None = None
    """At most this."""
    topics: tuple[Topic, ...] = ()
    """Lag is about these topics, instead of those with a subscription or a commit."""


@value
class CommitExpectation:
    """A commit of the group, of a topic if it is given, or of a partition of it."""

    topic: Topic | None = None
    partition: Partition | None = None
    offset: Offset | None = None
    """At least this. Without it, the commit must be accepted after the call."""

    def covers(self, each: TopicPartition) -> bool:
        return self.topic in (None, each.topic) and self.partition in (None, each.partition)


# Groups


def find_missing(group: GroupSnapshot, expected: GroupExpectation) -> list[str]:
    """A clause for each expectation that does not hold; none if all hold."""
    return [
        *find_missing_membership(group, expected),
        *find_missing_progress(group, expected),
    ]


def find_missing_membership(group: GroupSnapshot, expected: GroupExpectation) -> list[str]:
    """Like `find_missing`, without lag: it does not use `partitions`, which cost the most."""
    if group.state == DEAD:
        return [] if expected.state == DEAD else [f"group {group.group_id} does not exist"]
    missing = []
    if expected.members not in (None, len(group.members)):
        have = count(len(group.members), "member")
        missing.append(f"group {group.group_id} has {have}, {_expected(expected.members)}")
    wanted = STABLE if expected.stable else expected.state
    if wanted not in (None, group.state):
        missing.append(f"{state_clause(group)}, {wanted} was expected")
    elif expected.stable:
        missing += _find_unsettled(group)
    if expected.assigned not in (None, group.assigned):
        have = count(group.assigned, "partition")
        verb = "is" if group.assigned == 1 else "are"
        missing.append(f"{have} {verb} assigned, {_expected(expected.assigned)}")
    return missing


def find_missing_progress(group: GroupSnapshot, expected: GroupExpectation) -> list[str]:
    """Like `find_missing`, about lag alone."""
    if expected.lag is None or group.state == DEAD:
        return []
    known = {each.partition.topic for each in group.partitions}
    absent = [topic for topic in expected.topics if topic not in known]
    if absent:
        return [f"topic {topic} does not exist" for topic in absent]
    if group.lag is None:
        return ["lag is not known: no existing topic is subscribed to or has a committed offset"]
    if group.lag <= expected.lag:
        return []
    behind = sorted((each for each in group.partitions if each.lag), key=lambda each: -each.lag)
    listed = _listed([f"{_name(each.partition)} {each.lag:,}" for each in behind])
    return [f"lag is {group.lag:,}, at most {expected.lag:,} was expected: {listed}"]


def state_clause(group: GroupSnapshot) -> str:
    age = "" if group.state_age_ms is None else f" since {duration(group.state_age_ms)}"
    return f"state is {group.state}{age}"


def _find_unsettled(group: GroupSnapshot) -> list[str]:
    missing = []
    if group.unsynced:
        have = (
            "1 member has" if len(group.unsynced) == 1 else f"{len(group.unsynced):,} members have"
        )
        names = _names(group, group.unsynced)
        missing.append(f"{have} not received the assignment of this generation: {names}")
    if group.revoking:
        names = _names(group, group.revoking)
        missing.append(f"partitions must be revoked, then a rebalance follows: {names}")
    if group.joining:
        missing.append(f"{count(group.joining, 'member')} got a member id and did not join yet")
    return missing


def _names(group: GroupSnapshot, member_ids: Iterable[MemberId]) -> str:
    parties = {each.party.member_id: each.party for each in group.members}
    return _listed([member_name(parties[each]) if each in parties else each for each in member_ids])


def _expected(number: int | None) -> str:
    return f"{number:,} {'was' if number == 1 else 'were'} expected"


def _listed(items: Sequence[str]) -> str:
    shown = ", ".join(items[:_LISTED_MAX])
    return shown if len(items) <= _LISTED_MAX else f"{shown} and {len(items) - _LISTED_MAX:,} more"


def _name(each: TopicPartition) -> str:
    return f"{each.topic}-{each.partition}"


# Rebalances and commits


def missing_rebalance(group: GroupSnapshot, after: Generation) -> list[str]:
    """The clauses about a rebalance that has not completed."""
    if group.state == DEAD:
        return [f"group {group.group_id} does not exist"]
    return [
        f"no rebalance of group {group.group_id} after generation {after} has completed",
        state_clause(group),
    ]


def missing_commit(
    group_id: GroupId, committed: Mapping[TopicPartition, Offset], expected: CommitExpectation
) -> list[str]:
    """The clauses about a commit that was not accepted."""
    where = ""
    if expected.topic is not None:
        part = "" if expected.partition is None else f"-{expected.partition}"
        where = f" {expected.topic}{part}"
    if expected.offset is None:
        return [f"group {group_id} has not committed{where or ' an offset'} since the call"]
    have = [offset for each, offset in committed.items() if expected.covers(each)]
    if not have:
        return [f"group {group_id} has not committed{where}, {expected.offset:,} was expected"]
    best = f"group {group_id} has committed offset {max(have):,} of{where}"
    return [f"{best}, at least {expected.offset:,} was expected"]


# The text of a timeout


def timeout_text(
    group_id: GroupId, missing: Iterable[str], timeout_s: float, events: Sequence[str]
) -> str:
    """One line with what is missing, then the last events of the group, if any are known."""
    head = f"not within {duration(timeout_s * 1000)}: {'; '.join(missing)}"
    if not events:
        return head
    return "\n".join([head, f"last events of group {group_id}:", *(f"  {each}" for each in events)])
