"""Which offsets a batch reads, and how they are shared out to tasks. Pure, and plain Python."""

from collections.abc import Iterable
from itertools import pairwise

from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, value


@value
class Range:
    """Offsets of one partition: from `first` up to, but without, `stop`."""

    partition: TopicPartition
    first: Offset
    stop: Offset

    @property
    def size(self) -> int:
        return self.stop - self.first


def limit(ranges: Iterable[Range], rows_max: int) -> list[Range]:
    """At most so many offsets in all, each partition in proportion to what it has.

    A partition that has something gets at least one offset, so that none starves: where there
    are more such partitions than rows, the most loaded ones come first.
    """
    wanted = list(ranges)
    total = sum(each.size for each in wanted)
    if total <= rows_max:
        return wanted
    shares = _shares([each.size for each in wanted], rows_max)
    return [
        Range(partition=each.partition, first=each.first, stop=Offset(each.first + share))
        for each, share in zip(wanted, shares, strict=True)
    ]


def _shares(sizes: list[int], rows_max: int) -> list[int]:
    """Whole numbers that sum up to `rows_max`, by largest remainder, the larger size first."""
    total = sum(sizes)
    shares = [max(1, size * rows_max // total) if size else 0 for size in sizes]
    by_need = sorted(
        range(len(sizes)), key=lambda index: (sizes[index] - shares[index], index), reverse=True
    )
    missing = rows_max - sum(shares)
    for index in by_need if missing > 0 else reversed(by_need):
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


def split(ranges: Iterable[Range], parts_min: int) -> list[Range]:
    """At least so many parts where there are offsets enough: large ranges are cut, evenly."""
    wanted = [each for each in ranges if each.size > 0]
    if len(wanted) >= parts_min:
        return wanted
    total = sum(each.size for each in wanted)
    parts = []
    for each in wanted:
        # Rounded up: an even share of all offsets is never exceeded by much.
        count = min(each.size, max(1, -(-each.size * parts_min // total)))
        parts += _cut(each, count)
    return parts


def _cut(whole: Range, count: int) -> list[Range]:
    edges = [whole.first + whole.size * index // count for index in range(count + 1)]
    return [
        Range(partition=whole.partition, first=Offset(first), stop=Offset(stop))
        for first, stop in pairwise(edges)
    ]
