"""Which offsets a batch reads, and how they are shared out to tasks."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.source.ranges import Range, limit, split
from kohort.types import Offset, Partition, Topic

SIZES = st.lists(st.integers(0, 10_000), max_size=12)


def ranges_of(sizes: list[int]) -> list[Range]:
    return [
        Range(partition=at(number), first=Offset(7 * number), stop=Offset(7 * number + size))
        for number, size in enumerate(sizes)
    ]


def at(number: int) -> TopicPartition:
    return TopicPartition(Topic("t"), Partition(number))


def sizes_of(ranges: list[Range]) -> list[int]:
    return [each.size for each in ranges]


def test_a_limit_is_shared_in_proportion() -> None:
    limited = limit(ranges_of([1000, 3000, 0]), 400)

    assert sizes_of(limited) == [100, 300, 0]


def test_what_is_within_the_limit_is_left_alone() -> None:
    assert sizes_of(limit(ranges_of([5, 10]), 15)) == [5, 10]


def test_a_small_partition_is_not_starved_by_a_large_one() -> None:
    limited = limit(ranges_of([1_000_000, 1]), 10)

    assert sizes_of(limited) == [9, 1]


def test_where_partitions_outnumber_the_limit_the_most_loaded_come_first() -> None:
    limited = limit(ranges_of([5, 50, 20]), 2)

    assert sizes_of(limited) == [0, 1, 1]


@given(SIZES, st.integers(1, 20_000))
def test_a_limit_is_used_up_and_never_exceeded(sizes: list[int], rows_max: int) -> None:
    before = ranges_of(sizes)

    after = limit(before, rows_max)

    assert sum(sizes_of(after)) == min(sum(sizes), rows_max)
    for whole, part in zip(before, after, strict=True):
        assert (whole.partition, whole.first) == (part.partition, part.first)
        assert part.first <= part.stop <= whole.stop


def test_a_large_range_is_cut_into_more_parts_than_a_small_one() -> None:
    parts = split(ranges_of([900, 100]), 10)

    assert [each.partition.partition for each in parts].count(Partition(0)) == 9


def test_enough_ranges_are_left_whole() -> None:
    assert split(ranges_of([9, 0, 9]), 2) == [ranges_of([9])[0], ranges_of([9, 0, 9])[2]]


@given(SIZES, st.integers(1, 40))
def test_a_split_covers_every_offset_once(sizes: list[int], parts_min: int) -> None:
    before = ranges_of(sizes)

    after = split(before, parts_min)

    covered = [(each.partition, offset) for each in after for offset in (each.first, each.stop - 1)]
    assert len(set(covered)) >= len(after)
    assert all(each.size > 0 for each in after)
    assert len(after) >= min(parts_min, sum(sizes))
    for whole in before:
        parts = [each for each in after if each.partition == whole.partition]
        edges = [whole.first, *(each.stop for each in parts)]
        assert [each.first for each in parts] == edges[:-1]
        assert edges[-1] == whole.stop
