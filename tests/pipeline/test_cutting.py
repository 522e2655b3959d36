"""Where a stream's next batch begins and ends in each partition."""

import pytest

from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import DataLost
from kohort.pipeline.source.cutting import Loss, cut, mend, refuse_loss, settle_claims
from kohort.pipeline.source.stream_offset import NOWHERE, StreamOffset
from kohort.types import Offset, Partition, Topic


def at(number: int) -> TopicPartition:
    return TopicPartition(Topic("t"), Partition(number))


def offsets(*numbers: int) -> dict[TopicPartition, Offset]:
    return {at(index): Offset(number) for index, number in enumerate(numbers)}


def standing(*numbers: int) -> StreamOffset:
    return StreamOffset(positions=offsets(*numbers), begins={})


def test_the_checkpoint_wins_over_a_group_that_lags() -> None:
    claims, others = settle_claims([at(0)], offsets(30), offsets(20), is_shared=True)

    assert (claims, others) == (offsets(30), [])


def test_a_group_that_is_ahead_has_had_another_reader() -> None:
    claims, others = settle_claims([at(0)], offsets(30), offsets(50), is_shared=True)

    assert claims == offsets(50)
    assert others == [Loss(partition=at(0), first=Offset(30), stop=Offset(50))]


def test_a_query_that_shares_with_nobody_goes_by_its_checkpoint() -> None:
    claims, others = settle_claims([at(0)], offsets(30), offsets(50), is_shared=False)

    assert (claims, others) == (offsets(30), [])


def test_a_partition_from_another_member_goes_on_where_the_group_stands() -> None:
    claims, _ = settle_claims([at(0), at(1)], {}, offsets(20), is_shared=True)

    assert claims == offsets(20)


def test_a_batch_reads_from_where_it_stands_to_the_end() -> None:
    after = cut(standing(5, 5), offsets(5, 5), offsets(9, 5), None)

    assert after == standing(9, 5)


def test_without_anything_new_the_offset_is_the_very_same() -> None:
    start = StreamOffset(positions=offsets(5), begins=offsets(0))

    assert cut(start, offsets(5), offsets(5), None) is start


def test_what_came_is_noted_even_if_it_has_nothing_to_read() -> None:
    after = cut(NOWHERE, offsets(7), offsets(7), None)

    assert after == StreamOffset(positions=offsets(7), begins=offsets(7))


def test_what_went_is_no_longer_in_the_offset() -> None:
    after = cut(standing(5, 5), offsets(5), offsets(5), None)

    assert after == standing(5)


def test_what_does_not_go_on_from_the_checkpoint_says_where_it_begins() -> None:
    after = cut(standing(5), offsets(50), offsets(60), None)

    assert after == StreamOffset(positions=offsets(60), begins=offsets(50))


def test_a_batch_has_no_more_rows_than_it_may() -> None:
    after = cut(standing(0, 0), offsets(0, 0), offsets(10, 30), 20)

    assert after == standing(5, 15)


def test_a_log_that_ends_before_its_reader_gives_nothing() -> None:
    assert cut(standing(9), offsets(9), offsets(4), None) == standing(9)


def test_what_retention_took_is_passed_over_and_told() -> None:
    mended, losses = mend(offsets(3), offsets(10), offsets(20))

    assert mended == offsets(10)
    assert losses == [Loss(partition=at(0), first=Offset(3), stop=Offset(10))]


def test_a_topic_that_was_made_anew_is_read_from_its_beginning() -> None:
    mended, losses = mend(offsets(30), offsets(0), offsets(20))

    assert mended == offsets(0)
    assert losses == [Loss(partition=at(0), first=Offset(20), stop=Offset(30))]


def test_a_loss_is_an_error_that_names_what_is_gone() -> None:
    loss = Loss(partition=at(0), first=Offset(3), stop=Offset(10))

    with pytest.raises(DataLost, match=r"offsets 3 to 9 of t-0 .* failOnDataLoss=false"):
        refuse_loss([loss], fail=True, warn=lambda _: None)


def test_a_loss_may_be_only_told() -> None:
    told: list[str] = []
    loss = Loss(partition=at(0), first=Offset(3), stop=Offset(10))

    refuse_loss([loss], fail=False, warn=told.append)

    assert len(told) == 1
    assert "offsets 3 to 9 of t-0" in told[0]
