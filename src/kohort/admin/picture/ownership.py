"""Who held which partition, worked out from the rebalances of a group. Pure.

An owner that holds a partition before and after a rebalance holds it all the time: that it may have
paused meanwhile shows in the rebalance itself. One that loses it loses it when the rebalance
begins, where that is known, and else when the next generation is formed.
"""

from collections.abc import Iterable, Sequence

from kohort.admin.picture.values import Move, Party, Rebalance, Stretch
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis

Holding = dict[TopicPartition, Party]


def name_of(party: Party) -> str:
    """What stays of a member through restarts: its instance id, if it has one."""
    return f"instance {party.instance_id}" if party.instance_id else f"member {party.member_id}"


def find_stretches(rebalances: Sequence[Rebalance]) -> tuple[Stretch, ...]:
    """From the oldest known to now; those that are still held have no end."""
    made: list[Stretch] = []
    open_: dict[TopicPartition, tuple[Party, Millis | None]] = {}
    formed = [each for each in rebalances if each.ending in {"stable", "empty"}]
    if formed and formed[0].is_exact:
        open_ = {each: (party, None) for each, party in holding_before(formed[0]).items()}
    for each in formed:
        begun = each.started_ms if each.started_ms is not None else each.ended_ms
        after = holding_after(each)
        for partition, (party, since) in tuple(open_.items()):
            heir = after.get(partition)
            if heir is None or name_of(heir) != name_of(party):
                made.append(_stretch(partition, party, since, begun))
                del open_[partition]
        for partition, party in after.items():
            if partition not in open_:
                open_[partition] = (party, each.ended_ms)
    made += [_stretch(each, party, since, None) for each, (party, since) in open_.items()]
    return tuple(made)


def find_moves(rebalance: Rebalance) -> tuple[Move, ...]:
    """Partitions whose owner is another one than before; none where what was before is unknown."""
    if any(each.had is None for each in rebalance.participants):
        return ()
    before, after = holding_before(rebalance), holding_after(rebalance)
    return tuple(
        Move(partition=each, before=before.get(each), after=after.get(each))
        for each in sorted(before.keys() | after.keys())
        if _name(before.get(each)) != _name(after.get(each))
    )


def holding_before(rebalance: Rebalance) -> Holding:
    return _holding((each.party, each.had) for each in rebalance.participants)


def holding_after(rebalance: Rebalance) -> Holding:
    return _holding((each.party, each.got) for each in rebalance.participants)


def _holding(held: Iterable[tuple[Party, tuple[TopicPartition, ...] | None]]) -> Holding:
    return {each: party for party, partitions in held for each in partitions or ()}


def _name(party: Party | None) -> str:
    return "" if party is None else name_of(party)


def _stretch(
    partition: TopicPartition, party: Party, since: Millis | None, until: Millis | None
) -> Stretch:
    return Stretch(partition=partition, party=party, from_ms=since, to_ms=until)
