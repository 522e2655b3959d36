"""Plans to move offsets: pure, within the log, and honest about what they mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin import resetting
from kohort.admin.errors import NoSuchTopic, WrongWish
from kohort.admin.resetting import (
    AsPlanned,
    Facts,
    ResetRow,
    ResetWish,
    ShiftBy,
    Since,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    plan_reset,
)
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Millis, Offset, Partition, Topic

GROUP = GroupId("billing")


def at(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(Topic(topic), Partition(number))


def facts(committed: int | None, earliest: int, latest: int, since: int | None = None) -> Facts:
    return Facts(
        committed={} if committed is None else {at(0): Offset(committed)},
        earliest={at(0): Offset(earliest)},
        latest={at(0): Offset(latest)},
        since={} if since is None else {at(0): Offset(since)},
    )


def plan(wish: ResetWish, known: Facts) -> ResetRow:
    (row,) = plan_reset(GROUP, wish, [at(0)], known).rows
    return row


@pytest.mark.parametrize(
    ("wish", "new", "skipped", "again"),
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
        (Since(moment_ms=Millis(1)), 6, 1, 0),
        (AsPlanned(offsets={GROUP: {at(0): Offset(4)}}), 4, 0, 1),
    ],
)
def test_a_wish_becomes_a_row(wish: ResetWish, new: int, skipped: int, again: int) -> None:
    row = plan(wish, facts(5, 2, 10, since=6))

    assert (row.old, row.new, row.skipped, row.again) == (5, new, skipped, again)


def test_what_was_never_committed_has_nothing_to_skip() -> None:
    row = plan(ToEarliest(), facts(None, 2, 10))

    assert (row.old, row.new, row.skipped, row.again) == (None, 2, None, None)


def test_without_a_commit_the_current_place_is_the_end() -> None:
    assert plan(ToCurrent(), facts(None, 2, 10)).new == 10


def test_without_a_record_since_then_the_end_is_taken() -> None:
    assert plan(Since(moment_ms=Millis(1)), facts(5, 2, 10)).new == 10


def test_what_was_never_committed_cannot_be_shifted() -> None:
    with pytest.raises(WrongWish, match="orders:0"):
        plan(ShiftBy(records=1), facts(None, 2, 10))


def test_a_partition_that_is_not_there_is_named() -> None:
    with pytest.raises(NoSuchTopic, match="orders:1"):
        plan_reset(GROUP, ToLatest(), [at(0), at(1)], facts(5, 2, 10))


def test_records_that_are_gone_by_age_do_not_count() -> None:
    forward = plan(ToLatest(), facts(1, 4, 10))
    back = plan(ToEarliest(), facts(20, 4, 10))

    assert (forward.skipped, forward.again) == (6, 0)
    assert (back.skipped, back.again) == (0, 6)


offsets = st.integers(0, 1000)


@given(
    committed=st.none() | offsets,
    edges=st.tuples(offsets, offsets).map(sorted),
    since=st.none() | offsets,
    wish=st.one_of(
        st.just(ToEarliest()),
        st.just(ToLatest()),
        st.just(ToCurrent()),
        st.just(Since(moment_ms=Millis(1))),
        offsets.map(lambda offset: ToOffset(offset=Offset(offset))),
    ),
)
def test_a_new_offset_lies_within_the_log(
    committed: int | None, edges: list[int], since: int | None, wish: ResetWish
) -> None:
    row = plan(wish, facts(committed, edges[0], edges[1], since))

    assert edges[0] <= row.new <= edges[1]
    assert row.skipped is None or row.again is None or not (row.skipped and row.again)


# Words and files


def test_a_scope_is_topics_and_partitions_of_topics() -> None:
    scope = resetting.read_scope(["orders:0,2", "refunds", "orders:2"])

    assert scope.topics == ("refunds",)
    assert scope.partitions == (at(0), at(2))


@pytest.mark.parametrize("text", ["", ":1", "orders:", "orders:x", "orders:1,,2", "orders:-1"])
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(WrongWish):
        resetting.read_scope([text])


def test_a_file_about_one_group_needs_not_name_it() -> None:
    short = resetting.read_plan_file("orders,0,5\n\n refunds , 1 , 7 \n", [GROUP])
    long = resetting.read_plan_file("billing,orders,0,5\nbilling,refunds,1,7\n", [])

    assert (
        short == long == AsPlanned(offsets={GROUP: {at(0): Offset(5), at(1, "refunds"): Offset(7)}})
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
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(WrongWish):
        resetting.read_plan_file(text, [])


def test_a_plan_is_written_as_it_is_read() -> None:
    rows = (ResetRow(partition=at(0, 'a,"b'), old=None, new=Offset(5), skipped=None, again=None),)
    plans = [resetting.ResetPlan(group_id=group, rows=rows) for group in (GROUP, GroupId("x,y"))]

    one = resetting.read_plan_file(resetting.write_plan_file(plans[:1]), [GROUP])
    both = resetting.read_plan_file(resetting.write_plan_file(plans), [])

    wanted = {at(0, 'a,"b'): Offset(5)}
    assert one.offsets == {GROUP: wanted}
    assert both.offsets == {GROUP: wanted, GroupId("x,y"): wanted}
