"""The planner: offsets in the checkpoint, where a batch begins and ends, ranges for tasks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.pipeline.errors import BadCheckpoint, DataLost
from kohort.pipeline.source.planner import (
    NO_OFFSET,
    OffsetRange,
    StreamOffset,
    clamp_positions,
    limit_ranges,
    plan_batch,
    report_losses,
    resume_positions,
    split_ranges,
)
from kohort.types import Offset, Partition, Topic, TopicPartition

SIZES = st.lists(st.integers(0, 10_000), max_size=12)


def at(number: int) -> TopicPartition:
    return TopicPartition(Topic("t"), Partition(number))


def offsets(*numbers: int) -> dict[TopicPartition, Offset]:
    return {at(index): Offset(number) for index, number in enumerate(numbers)}


def stream_offset(*numbers: int) -> StreamOffset:
    return StreamOffset(positions=offsets(*numbers), begins={})


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [
        OffsetRange(partition=at(number), first=Offset(7 * number), stop=Offset(7 * number + size))
        for number, size in enumerate(sizes)
    ]


def sizes_of(ranges: list[OffsetRange]) -> list[int]:
    return [each.size for each in ranges]


def test_an_offset_has_the_positions_and_where_the_batch_began() -> None:
    offset = StreamOffset(
        positions={at(0): Offset(120), at(1): Offset(80)}, begins={at(1): Offset(55)}
    )

    assert offset.write() == {"t": {"0": 120, "1": 80}, "$begin": {"t": {"1": 55}}}
    assert StreamOffset.read(offset.write()) == offset


def test_the_offset_before_the_first_batch_is_empty() -> None:
    assert NO_OFFSET.write() == {}
    assert StreamOffset.read({}) == NO_OFFSET


def test_two_offsets_define_the_ranges_of_a_batch() -> None:
    start = StreamOffset.read({"t": {"0": 100, "2": 7}})
    end = StreamOffset.read({"t": {"0": 120, "1": 80}, "$begin": {"t": {"1": 55}}})

    assert end.ranges_since(start) == [
        OffsetRange(partition=at(0), first=Offset(100), stop=Offset(120)),
        OffsetRange(partition=at(1), first=Offset(55), stop=Offset(80)),
    ]


def test_a_recorded_beginning_overrides_the_previous_position() -> None:
    start = StreamOffset.read({"t": {"0": 10}})
    end = StreamOffset.read({"t": {"0": 60}, "$begin": {"t": {"0": 50}}})

    assert [(each.first, each.stop) for each in end.ranges_since(start)] == [(50, 60)]


@pytest.mark.parametrize(
    "written",
    [
        {"t": 5},
        {"t": {"zero": 5}},
        {"t": {"0": "5"}},
        {"t": {"0": True}},
        {"$begin": []},
    ],
)
def test_an_offset_of_another_source_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(BadCheckpoint, match="checkpointLocation"):
        StreamOffset.read(written)


@pytest.mark.parametrize("start", [{}, {"t": {"0": 99}}])
def test_a_batch_without_a_beginning_is_refused(start: dict[str, Any]) -> None:
    end = StreamOffset.read({"t": {"0": 60}})

    with pytest.raises(BadCheckpoint, match="t-0"):
        end.ranges_since(StreamOffset.read(start))


def test_the_checkpoint_overrides_an_older_committed_offset() -> None:
    resumed, others = resume_positions([at(0)], offsets(30), offsets(20), is_shared=True)

    assert (resumed, others) == (offsets(30), [])


def test_a_newer_committed_offset_means_another_member_read_the_range() -> None:
    resumed, others = resume_positions([at(0)], offsets(30), offsets(50), is_shared=True)

    assert resumed == offsets(50)
    assert others == [OffsetRange(partition=at(0), first=Offset(30), stop=Offset(50))]


def test_a_query_without_membership_uses_its_checkpoint() -> None:
    resumed, others = resume_positions([at(0)], offsets(30), offsets(50), is_shared=False)

    assert (resumed, others) == (offsets(30), [])


def test_a_partition_from_another_member_resumes_at_its_committed_offset() -> None:
    resumed, _ = resume_positions([at(0), at(1)], {}, offsets(20), is_shared=True)

    assert resumed == offsets(20)


def test_a_batch_reads_from_its_position_to_the_log_end() -> None:
    after = plan_batch(stream_offset(5, 5), offsets(5, 5), offsets(9, 5), None)

    assert after == stream_offset(9, 5)


def test_without_new_records_the_offset_is_the_same_object() -> None:
    start = StreamOffset(positions=offsets(5), begins=offsets(0))

    assert plan_batch(start, offsets(5), offsets(5), None) is start


def test_a_new_partition_is_recorded_even_without_records() -> None:
    after = plan_batch(NO_OFFSET, offsets(7), offsets(7), None)

    assert after == StreamOffset(positions=offsets(7), begins=offsets(7))


def test_a_revoked_partition_is_removed_from_the_offset() -> None:
    after = plan_batch(stream_offset(5, 5), offsets(5), offsets(5), None)

    assert after == stream_offset(5)


def test_a_position_other_than_the_checkpointed_one_is_recorded() -> None:
    after = plan_batch(stream_offset(5), offsets(50), offsets(60), None)

    assert after == StreamOffset(positions=offsets(60), begins=offsets(50))


def test_a_batch_has_at_most_rows_max_rows() -> None:
    after = plan_batch(stream_offset(0, 0), offsets(0, 0), offsets(10, 30), 20)

    assert after == stream_offset(5, 15)


def test_a_log_end_before_the_position_gives_an_empty_range() -> None:
    assert plan_batch(stream_offset(9), offsets(9), offsets(4), None) == stream_offset(9)


def test_records_deleted_by_retention_are_skipped_and_returned_as_lost() -> None:
    clamped, losses = clamp_positions(offsets(3), offsets(10), offsets(20))

    assert clamped == offsets(10)
    assert losses == [OffsetRange(partition=at(0), first=Offset(3), stop=Offset(10))]


def test_a_recreated_topic_is_read_from_its_beginning() -> None:
    clamped, losses = clamp_positions(offsets(30), offsets(0), offsets(20))

    assert clamped == offsets(0)
    assert losses == [OffsetRange(partition=at(0), first=Offset(20), stop=Offset(30))]


def test_a_loss_is_an_error_that_names_the_offsets() -> None:
    loss = OffsetRange(partition=at(0), first=Offset(3), stop=Offset(10))

    with pytest.raises(DataLost, match=r"offsets 3 to 9 of t-0 .* failOnDataLoss=false"):
        report_losses([loss], fail=True, warn=lambda _: None)


def test_a_loss_may_be_only_a_warning() -> None:
    warnings: list[str] = []
    loss = OffsetRange(partition=at(0), first=Offset(3), stop=Offset(10))

    report_losses([loss], fail=False, warn=warnings.append)

    assert len(warnings) == 1
    assert "offsets 3 to 9 of t-0" in warnings[0]


def test_a_limit_is_shared_in_proportion() -> None:
    limited = limit_ranges(ranges_of([1000, 3000, 0]), 400)

    assert sizes_of(limited) == [100, 300, 0]


def test_ranges_within_the_limit_are_unchanged() -> None:
    assert sizes_of(limit_ranges(ranges_of([5, 10]), 15)) == [5, 10]


def test_a_small_partition_is_not_starved_by_a_large_one() -> None:
    limited = limit_ranges(ranges_of([1_000_000, 1]), 10)

    assert sizes_of(limited) == [9, 1]


def test_with_more_partitions_than_rows_the_largest_come_first() -> None:
    limited = limit_ranges(ranges_of([5, 50, 20]), 2)

    assert sizes_of(limited) == [0, 1, 1]


@given(SIZES, st.integers(1, 20_000))
def test_a_limit_is_used_up_and_never_exceeded(sizes: list[int], rows_max: int) -> None:
    before = ranges_of(sizes)

    after = limit_ranges(before, rows_max)

    assert sum(sizes_of(after)) == min(sum(sizes), rows_max)
    for whole, part in zip(before, after, strict=True):
        assert (whole.partition, whole.first) == (part.partition, part.first)
        assert part.first <= part.stop <= whole.stop


def test_a_large_range_is_cut_into_more_parts_than_a_small_one() -> None:
    parts = split_ranges(ranges_of([900, 100]), 10)

    assert [each.partition.partition for each in parts].count(Partition(0)) == 9


def test_enough_ranges_are_not_split() -> None:
    assert split_ranges(ranges_of([9, 0, 9]), 2) == [ranges_of([9])[0], ranges_of([9, 0, 9])[2]]


@given(SIZES, st.integers(1, 40))
def test_a_split_covers_every_offset_once(sizes: list[int], partitions_min: int) -> None:
    before = ranges_of(sizes)

    after = split_ranges(before, partitions_min)

    covered = [(each.partition, offset) for each in after for offset in (each.first, each.stop - 1)]
    assert len(set(covered)) >= len(after)
    assert all(each.size > 0 for each in after)
    assert len(after) >= min(partitions_min, sum(sizes))
    for whole in before:
        parts = [each for each in after if each.partition == whole.partition]
        edges = [whole.first, *(each.stop for each in parts)]
        assert [each.first for each in parts] == edges[:-1]
        assert edges[-1] == whole.stop
