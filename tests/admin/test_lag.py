"""Consumer lag: arithmetic and unknown values."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.lag import group_lag, lag_of
from kohort.types import GroupId, Offset, Partition, Topic, TopicPartition

GROUP = GroupId("billing")


def at(number: int) -> TopicPartition:
    return TopicPartition(Topic("orders"), Partition(number))


offsets = st.integers(0, 2**62).map(Offset)


@given(committed=offsets, end=offsets)
def test_a_lag_is_never_negative(committed: Offset, end: Offset) -> None:
    lag = lag_of(committed, end)

    assert lag is not None
    assert lag >= 0
    assert lag in (0, end - committed)


def test_lag_is_unknown_without_a_commit_or_a_log_end() -> None:
    assert lag_of(None, Offset(5)) is None
    assert lag_of(Offset(5), None) is None


def test_a_group_has_a_total_lag_and_a_worst_partition() -> None:
    committed = {at(0): Offset(1), at(1): Offset(0), at(2): Offset(9)}
    ends = {at(0): Offset(4), at(1): Offset(7)}

    lag = group_lag(GROUP, committed, ends, assigned=[at(3)])

    assert lag.total == 10
    assert lag.worst is not None
    assert (lag.worst.partition, lag.worst.lag) == (at(1), 7)
    assert [each.partition for each in lag.partitions] == [at(0), at(1), at(2), at(3)]
    assert lag.unknown == 2


def test_of_equal_lags_the_first_partition_is_the_worst() -> None:
    committed = {at(1): Offset(0), at(0): Offset(0)}

    lag = group_lag(GROUP, committed, {at(0): Offset(3), at(1): Offset(3)})

    assert lag.worst is not None
    assert lag.worst.partition == at(0)


def test_a_group_without_commits_has_no_lag_and_no_worst() -> None:
    lag = group_lag(GROUP, {}, {})

    assert (lag.total, lag.worst, lag.unknown, lag.partitions) == (0, None, 0, ())
