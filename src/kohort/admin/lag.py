"""How far groups are behind, from what they committed and where logs end. Pure.

A lag is never negative: a log's end that was asked for a moment before a commit may lie before it.
"""

from collections.abc import Collection, Mapping

from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Offset, value


@value
class PartitionLag:
    partition: TopicPartition
    committed: Offset | None
    """None where the group has committed nothing there."""
    end: Offset | None
    """None where there is no such partition any more."""
    lag: int | None
    """None where one of the two is."""


@value
class GroupLag:
    group_id: GroupId
    partitions: tuple[PartitionLag, ...]
    """In order."""
    total: int
    """Of all partitions whose lag is known."""
    worst: PartitionLag | None
    """The partition furthest behind; the first of those that are equally far."""
    unknown: int
    """How many partitions have no known lag."""


def lag_of(committed: Offset | None, end: Offset | None) -> int | None:
    return None if committed is None or end is None else max(0, end - committed)


def partition_lag(
    partition: TopicPartition, committed: Offset | None, end: Offset | None
) -> PartitionLag:
    return PartitionLag(
        partition=partition, committed=committed, end=end, lag=lag_of(committed, end)
    )


def group_lag(
    group_id: GroupId,
    committed: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
    assigned: Collection[TopicPartition] = (),
) -> GroupLag:
    """Of all that the group has committed, and of what its members hold without a commit."""
    lags = tuple(
        partition_lag(each, committed.get(each), ends.get(each))
        for each in sorted({*committed, *assigned})
    )
    known = [each for each in lags if each.lag is not None]
    return GroupLag(
        group_id=group_id,
        partitions=lags,
        total=sum(each.lag or 0 for each in known),
        worst=max(known, key=lambda each: each.lag or 0, default=None),
        unknown=len(lags) - len(known),
    )
