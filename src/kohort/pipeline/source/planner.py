"""Plan micro-batches: offsets in the checkpoint, where a batch begins and ends, ranges for tasks.

Pure: no broker, no Spark. A stream's offset, as Spark's checkpoint stores it, is

    {"orders": {"0": 120, "1": 80}, "$begin": {"orders": {"1": 55}}}

It lists the assigned partitions and the next offset to read of each. `$begin` lists the
partitions that do not continue from the previous offset, because they came from another member, are
new or lost records, and says where the batch begins in them. So Spark can run a batch again from
two offsets of the checkpoint alone, whatever is assigned to the query by then. No topic name can
contain a dollar sign.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from kohort.pipeline.errors import BadCheckpoint, DataLost
from kohort.pipeline.source.options import offsets_from_json, offsets_to_json
from kohort.types import Offset, TopicPartition, value

Offsets = Mapping[TopicPartition, Offset]

_BEGIN: Final = "$begin"


@value
class OffsetRange:
    """Offsets of one partition, from `first` up to but excluding `stop`."""

    partition: TopicPartition
    first: Offset
    stop: Offset

    @property
    def size(self) -> int:
        return self.stop - self.first


@value
class StreamOffset:
    positions: Offsets
    """The next offset to read of every assigned partition."""
    begins: Offsets
    """Where the batch that ended here began, if not at the previous position."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "StreamOffset":
        try:
            rest = {name: each for name, each in given.items() if name != _BEGIN}
            begins = offsets_from_json(given.get(_BEGIN, {}))
            return cls(positions=offsets_from_json(rest), begins=begins)
        except (AttributeError, TypeError, ValueError) as error:
            shown = json.dumps(dict(given))[:200]
            raise BadCheckpoint(
                f"the checkpoint has an offset that another source wrote: {shown}; "
                "each query needs a checkpointLocation of its own"
            ) from error

    def write(self) -> dict[str, Any]:
        """What `read` accepts."""
        begins = {_BEGIN: offsets_to_json(self.begins)} if self.begins else {}
        return {**offsets_to_json(self.positions), **begins}

    def ranges_since(self, start: "StreamOffset") -> list[OffsetRange]:
        """The ranges that the batch between two offsets reads, ordered by partition."""
        ranges = []
        for partition, stop in sorted(self.positions.items()):
            first = self.begins.get(partition, start.positions.get(partition))
            if first is None or first > stop:
                topic, number = partition
                raise BadCheckpoint(
                    f"the checkpoint does not say where the batch begins in {topic}-{number}"
                )
            ranges.append(OffsetRange(partition=partition, first=first, stop=stop))
        return ranges


NO_OFFSET: Final = StreamOffset(positions={}, begins={})
"""The offset before the first batch."""


def resume_positions(
    fresh: Collection[TopicPartition], checkpointed: Offsets, committed: Offsets, *, is_shared: bool
) -> tuple[dict[TopicPartition, Offset], list[OffsetRange]]:
    """Positions of newly assigned partitions, and ranges that other members have read meanwhile.

    The checkpoint takes precedence over the group's committed offset, which may be older. Only if
    the group shares its partitions can the committed offset be newer: then another member owned the
    partition and read it up to there. Partitions that neither knows are left out.
    """
    positions: dict[TopicPartition, Offset] = {}
    read_by_others: list[OffsetRange] = []
    for partition in fresh:
        mine, theirs = checkpointed.get(partition), committed.get(partition)
        if mine is None:
            if theirs is not None:
                positions[partition] = theirs
        elif is_shared and theirs is not None and theirs > mine:
            positions[partition] = theirs
            read_by_others.append(OffsetRange(partition=partition, first=mine, stop=theirs))
        else:
            positions[partition] = mine
    return positions, read_by_others


def clamp_positions(
    positions: Offsets, beginnings: Offsets, ends: Offsets
) -> tuple[dict[TopicPartition, Offset], list[OffsetRange]]:
    """Positions within the logs, and the ranges that are lost.

    A position after the log end means that the topic was recreated or its log truncated: what is
    there now is read from its beginning.
    """
    clamped: dict[TopicPartition, Offset] = {}
    losses: list[OffsetRange] = []
    for partition, position in positions.items():
        beginning, end = beginnings.get(partition), ends.get(partition)
        clamped[partition] = position
        if beginning is None or end is None:
            continue
        if position < beginning:
            losses.append(OffsetRange(partition=partition, first=position, stop=beginning))
            clamped[partition] = beginning
        elif position > end:
            losses.append(OffsetRange(partition=partition, first=end, stop=position))
            clamped[partition] = beginning
    return clamped, losses


def plan_batch(
    start: StreamOffset, positions: Offsets, ends: Offsets, rows_max: int | None
) -> StreamOffset:
    """The offset after the next batch; `start` itself if there is nothing to read or to record.

    A newly assigned partition is recorded even if it has no records, so that the checkpoint has
    its position.
    """
    ranges = [
        OffsetRange(partition=partition, first=first, stop=max(first, ends.get(partition, first)))
        for partition, first in sorted(positions.items())
    ]
    if rows_max is not None:
        ranges = limit_ranges(ranges, rows_max)
    after = {each.partition: each.stop for each in ranges}
    begins = {
        each.partition: each.first
        for each in ranges
        if start.positions.get(each.partition) != each.first
    }
    if after == start.positions and not begins:
        return start
    return StreamOffset(positions=after, begins=begins)


def report_losses(losses: list[OffsetRange], *, fail: bool, warn: Callable[[str], None]) -> None:
    """Raise DataLost for the first lost range, or warn about each."""
    for loss in losses:
        topic, number = loss.partition
        what = (
            f"offsets {loss.first} to {loss.stop - 1} of {topic}-{number} are gone: deleted by "
            "retention or by an administrator, or the topic was recreated"
        )
        if fail:
            raise DataLost(f"{what}; failOnDataLoss=false continues without them")
        warn(what)


def limit_ranges(ranges: Iterable[OffsetRange], rows_max: int) -> list[OffsetRange]:
    """At most `rows_max` offsets in total, shared in proportion to the size of the ranges.

    Each non-empty range gets at least one offset, so that no partition starves. If there are more
    such ranges than rows, the largest ones come first.
    """
    wanted = list(ranges)
    total = sum(each.size for each in wanted)
    if total <= rows_max:
        return wanted
    shares = _shares([each.size for each in wanted], rows_max)
    return [
        OffsetRange(partition=each.partition, first=each.first, stop=Offset(each.first + share))
        for each, share in zip(wanted, shares, strict=True)
    ]


def _shares(sizes: list[int], rows_max: int) -> list[int]:
    """Integers that sum to `rows_max`, by largest remainder, the larger size first."""
    total = sum(sizes)
    shares = [max(1, size * rows_max // total) if size else 0 for size in sizes]
    by_deficit = sorted(
        range(len(sizes)), key=lambda index: (sizes[index] - shares[index], index), reverse=True
    )
    missing = rows_max - sum(shares)
    for index in by_deficit if missing > 0 else reversed(by_deficit):
        if missing == 0:
            break
        if missing > 0:
            more = min(missing, sizes[index] - shares[index])
            shares[index] += more
            missing -= more
        elif shares[index]:
            fewer = min(-missing, shares[index])
            shares[index] -= fewer
            missing += fewer
    return shares


def split_ranges(ranges: Iterable[OffsetRange], partitions_min: int) -> list[OffsetRange]:
    """At least `partitions_min` ranges, if there are enough offsets, by splitting large ranges."""
    wanted = [each for each in ranges if each.size > 0]
    if len(wanted) >= partitions_min:
        return wanted
    total = sum(each.size for each in wanted)
    parts = []
    for each in wanted:
        # Rounded up, so that no part is much larger than an even share of all offsets.
        count = min(each.size, max(1, -(-each.size * partitions_min // total)))
        parts += _cut(each, count)
    return parts


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.first + whole.size * index // count for index in range(count + 1)]
    return [
        OffsetRange(partition=whole.partition, first=Offset(first), stop=Offset(stop))
        for first, stop in pairwise(edges)
    ]
