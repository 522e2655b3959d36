"""Consumer lag from committed offsets and log end offsets. Pure.

Lag is never negative, although a log end offset that was read before a commit may be smaller.
"""

from collections.abc import Collection, Mapping

from kohort.types import GroupId, Offset, TopicPartition, value


@value
class PartitionLag:
    partition: TopicPartition
    committed: Offset | None
    """None if nothing is committed."""
    end: Offset | None
    """None if the partition does not exist any more."""
    lag: int | None
    """None if `committed` or `end` is None."""


@value
class GroupLag:
    group_id: GroupId
    partitions: tuple[PartitionLag, ...]
    """Sorted."""
    total: int
    """Sum over the partitions with a known lag."""
    worst: PartitionLag | None
    """The partition with the largest lag; the first one if several have it."""
    unknown: int
    """Number of partitions without a known lag."""


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
    """Lag of the partitions with a committed offset, and of assigned ones without."""
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
