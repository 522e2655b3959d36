"""A stream's offset, as it stands in the checkpoint."""

from typing import Any

import pytest

from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import BadCheckpoint
from kohort.pipeline.source.ranges import Range
from kohort.pipeline.source.stream_offset import NOWHERE, StreamOffset
from kohort.types import Offset, Partition, Topic


def at(number: int) -> TopicPartition:
    return TopicPartition(Topic("orders"), Partition(number))


def test_an_offset_says_what_was_held_and_where_it_began() -> None:
    offset = StreamOffset(
        positions={at(0): Offset(120), at(1): Offset(80)}, begins={at(1): Offset(55)}
    )

    assert offset.write() == {"orders": {"0": 120, "1": 80}, "$begin": {"orders": {"1": 55}}}
    assert StreamOffset.read(offset.write()) == offset


def test_nowhere_is_empty() -> None:
    assert NOWHERE.write() == {}
    assert StreamOffset.read({}) == NOWHERE


def test_two_offsets_are_all_it_takes_to_read_a_batch_again() -> None:
    start = StreamOffset.read({"orders": {"0": 100, "2": 7}})
    end = StreamOffset.read({"orders": {"0": 120, "1": 80}, "$begin": {"orders": {"1": 55}}})

    assert end.ranges_since(start) == [
        Range(partition=at(0), first=Offset(100), stop=Offset(120)),
        Range(partition=at(1), first=Offset(55), stop=Offset(80)),
    ]


def test_where_it_began_counts_more_than_where_it_stood() -> None:
    start = StreamOffset.read({"orders": {"0": 10}})
    end = StreamOffset.read({"orders": {"0": 60}, "$begin": {"orders": {"0": 50}}})

    assert [(each.first, each.stop) for each in end.ranges_since(start)] == [(50, 60)]


@pytest.mark.parametrize(
    "given",
    [
        {"orders": 5},
        {"orders": {"zero": 5}},
        {"orders": {"0": "5"}},
        {"orders": {"0": True}},
        {"$begin": []},
    ],
)
def test_what_another_source_wrote_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadCheckpoint, match="checkpointLocation"):
        StreamOffset.read(given)


@pytest.mark.parametrize("start", [{}, {"orders": {"0": 99}}])
def test_a_batch_without_a_beginning_is_refused(start: dict[str, Any]) -> None:
    end = StreamOffset.read({"orders": {"0": 60}})

    with pytest.raises(BadCheckpoint, match="orders-0"):
        end.ranges_since(StreamOffset.read(start))
