"""Which member owned which partition and when, derived from rebalances. Pure.

A member that owns a partition before and after a rebalance owns it without interruption. A member
that loses a partition loses it when the rebalance starts, or, if the start is not known, when the
next generation is formed.
"""

from collections.abc import Iterable, Sequence

from kohort.admin.group_monitor.views import ObservedRebalance, OwnershipInterval, PartitionMove
from kohort.events.schema import EventMember
from kohort.types import Millis, TopicPartition

Owners = dict[TopicPartition, EventMember]


def stable_id(party: EventMember) -> str:
    """The identity that survives restarts: the instance id, if there is one."""
    return f"instance {party.instance_id}" if party.instance_id else f"member {party.member_id}"


def ownership_intervals(rebalances: Sequence[ObservedRebalance]) -> tuple[OwnershipInterval, ...]:
    """From the oldest known rebalance until now. Current owners have no end."""
    intervals: list[OwnershipInterval] = []
    current: dict[TopicPartition, tuple[EventMember, Millis | None]] = {}
    formed = [each for each in rebalances if each.ending in {"stable", "empty"}]
    if formed and formed[0].is_exact:
        current = {each: (party, None) for each, party in owners_before(formed[0]).items()}
    for each in formed:
        lost_ms = each.started_ms if each.started_ms is not None else each.ended_ms
        after = owners_after(each)
        for partition, (party, since) in tuple(current.items()):
            new_owner = after.get(partition)
            if new_owner is None or stable_id(new_owner) != stable_id(party):
                intervals.append(_interval(partition, party, since, lost_ms))
                del current[partition]
        for partition, party in after.items():
            if partition not in current:
                current[partition] = (party, each.ended_ms)
    intervals += [_interval(each, party, since, None) for each, (party, since) in current.items()]
    return tuple(intervals)


def find_moves(rebalance: ObservedRebalance) -> tuple[PartitionMove, ...]:
    """Partitions whose owner changed; empty if the previous assignment is not known."""
    if any(each.had is None for each in rebalance.participants):
        return ()
    before, after = owners_before(rebalance), owners_after(rebalance)
    return tuple(
        PartitionMove(partition=each, before=before.get(each), after=after.get(each))
        for each in sorted(before.keys() | after.keys())
        if _id(before.get(each)) != _id(after.get(each))
    )


def owners_before(rebalance: ObservedRebalance) -> Owners:
    return _owners((each.party, each.had) for each in rebalance.participants)


def owners_after(rebalance: ObservedRebalance) -> Owners:
    return _owners((each.party, each.got) for each in rebalance.participants)


def _owners(assignments: Iterable[tuple[EventMember, tuple[TopicPartition, ...] | None]]) -> Owners:
    return {each: party for party, partitions in assignments for each in partitions or ()}


def _id(party: EventMember | None) -> str:
    return "" if party is None else stable_id(party)


def _interval(
    partition: TopicPartition, party: EventMember, since: Millis | None, until: Millis | None
) -> OwnershipInterval:
    return OwnershipInterval(partition=partition, party=party, from_ms=since, to_ms=until)
