"""Plans of offset resets, and their text formats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin import offset_reset
from kohort.admin.errors import InvalidRequest, NoSuchTopic
from kohort.admin.offset_reset import (
    FromFile,
    LogOffsets,
    ResetRow,
    ResetTarget,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTimestamp,
    plan_reset,
)
from kohort.types import GroupId, Millis, Offset, Partition, Topic, TopicPartition

GROUP = GroupId("billing")


def at(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(Topic(topic), Partition(number))


def log_offsets(
    committed: int | None, earliest: int, latest: int, since: int | None = None
) -> LogOffsets:
    return LogOffsets(
        committed={} if committed is None else {at(0): Offset(committed)},
        earliest={at(0): Offset(earliest)},
        latest={at(0): Offset(latest)},
        since={} if since is None else {at(0): Offset(since)},
    )


def plan(target: ResetTarget, known: LogOffsets) -> ResetRow:
    (row,) = plan_reset(GROUP, target, [at(0)], known).rows
    return row


@pytest.mark.parametrize(
    ("target", "new", "skipped", "again"),
    [
        (ToEarliest(), 2, 0, 3),
        (ToLatest(), 10, 5, 0),
        (ToCurrent(), 5, 0, 0),
        (ToOffset(offset=Offset(7)), 7, 2, 0),
        (ToOffset(offset=Offset(99)), 10, 5, 0),
        (ToOffset(offset=Offset(0)), 2, 0, 3),
        (ShiftBy(records=3), 8, 3, 0),
        (ShiftBy(records=-2), 3, 0, 2),
        (ShiftBy(records=-50), 2, 0, 3),
        (ToTimestamp(timestamp_ms=Millis(1)), 6, 1, 0),
        (FromFile(offsets={GROUP: {at(0): Offset(4)}}), 4, 0, 1),
    ],
)
def test_the_new_offset_of_each_target(
    target: ResetTarget, new: int, skipped: int, again: int
) -> None:
    row = plan(target, log_offsets(5, 2, 10, since=6))

    assert (row.old, row.new, row.skipped, row.again) == (5, new, skipped, again)


def test_without_a_commit_nothing_is_skipped() -> None:
    row = plan(ToEarliest(), log_offsets(None, 2, 10))

    assert (row.old, row.new, row.skipped, row.again) == (None, 2, None, None)


def test_without_a_commit_the_current_offset_is_the_log_end() -> None:
    assert plan(ToCurrent(), log_offsets(None, 2, 10)).new == 10


def test_without_a_record_since_the_timestamp_the_log_end_is_used() -> None:
    assert plan(ToTimestamp(timestamp_ms=Millis(1)), log_offsets(5, 2, 10)).new == 10


def test_without_a_commit_an_offset_cannot_be_shifted() -> None:
    with pytest.raises(InvalidRequest, match="orders:0"):
        plan(ShiftBy(records=1), log_offsets(None, 2, 10))


def test_a_missing_partition_is_named() -> None:
    with pytest.raises(NoSuchTopic, match="orders:1"):
        plan_reset(GROUP, ToLatest(), [at(0), at(1)], log_offsets(5, 2, 10))


def test_deleted_records_are_not_counted() -> None:
    forward = plan(ToLatest(), log_offsets(1, 4, 10))
    back = plan(ToEarliest(), log_offsets(20, 4, 10))

    assert (forward.skipped, forward.again) == (6, 0)
    assert (back.skipped, back.again) == (0, 6)


offsets = st.integers(0, 1000)


@given(
    committed=st.none() | offsets,
    edges=st.tuples(offsets, offsets).map(sorted),
    since=st.none() | offsets,
    target=st.one_of(
        st.just(ToEarliest()),
        st.just(ToLatest()),
        st.just(ToCurrent()),
        st.just(ToTimestamp(timestamp_ms=Millis(1))),
        offsets.map(lambda offset: ToOffset(offset=Offset(offset))),
    ),
)
def test_a_new_offset_lies_within_the_log(
    committed: int | None, edges: list[int], since: int | None, target: ResetTarget
) -> None:
    row = plan(target, log_offsets(committed, edges[0], edges[1], since))

    assert edges[0] <= row.new <= edges[1]
    assert row.skipped is None or row.again is None or not (row.skipped and row.again)


# Text formats


def test_a_scope_has_topics_and_partitions() -> None:
    scope = offset_reset.read_scope(["orders:0,2", "refunds", "orders:2"])

    assert scope.topics == ("refunds",)
    assert scope.partitions == (at(0), at(2))


@pytest.mark.parametrize("text", ["", ":1", "orders:", "orders:x", "orders:1,,2", "orders:-1"])
def test_an_invalid_scope_is_rejected(text: str) -> None:
    with pytest.raises(InvalidRequest):
        offset_reset.read_scope([text])


def test_the_group_is_optional_in_a_file_for_one_group() -> None:
    short = offset_reset.read_plan_file("orders,0,5\n\n refunds , 1 , 7 \n", [GROUP])
    long = offset_reset.read_plan_file("billing,orders,0,5\nbilling,refunds,1,7\n", [])

    assert (
        short == long == FromFile(offsets={GROUP: {at(0): Offset(5), at(1, "refunds"): Offset(7)}})
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders,0",
        "orders,0,5",
        "a,orders,x,5",
        "a,orders,0,-5",
        "a,b,orders,0,5",
        "a,orders,0,",
    ],
)
def test_an_invalid_plan_file_is_rejected(text: str) -> None:
    with pytest.raises(InvalidRequest):
        offset_reset.read_plan_file(text, [])


def test_reading_inverts_writing() -> None:
    rows = (ResetRow(partition=at(0, 'a,"b'), old=None, new=Offset(5), skipped=None, again=None),)
    plans = [offset_reset.ResetPlan(group_id=group, rows=rows) for group in (GROUP, GroupId("x,y"))]

    one = offset_reset.read_plan_file(offset_reset.write_plan_file(plans[:1]), [GROUP])
    both = offset_reset.read_plan_file(offset_reset.write_plan_file(plans), [])

    wanted = {at(0, 'a,"b'): Offset(5)}
    assert one.offsets == {GROUP: wanted}
    assert both.offsets == {GROUP: wanted, GroupId("x,y"): wanted}
