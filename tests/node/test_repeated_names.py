"""Requests that name the same group or partition more than once get one result for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.types import ErrorCode, GroupId, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.node.broker_harness import BrokerHarness

GROUP, TOPIC = GroupId("g"), Topic("t")


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[BrokerHarness]:
    harness = BrokerHarness(tmp_path)
    harness.create(TOPIC, 3)
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=Partition(each), committed_offset=Offset(10 + each)
        )
        for each in range(3)
    )
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    harness.answer(OffsetCommitRequest(group_id=GROUP, topics=(topic,)), 8)
    yield harness
    harness.close()


def fetch_all(harness: BrokerHarness) -> list[int]:
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    (fetched,) = harness.answer(OffsetFetchRequest(groups=(group,)), 8).groups
    return [each.partition_index for topic in fetched.topics for each in topic.partitions]


def test_group_that_is_fetched_twice_is_returned_twice(harness: BrokerHarness) -> None:
    whole = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    asked = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(Partition(1),))
    part = OffsetFetchRequestGroup(group_id=GROUP, topics=(asked,))
    other = OffsetFetchRequestGroup(group_id=GroupId("other"), topics=None)

    answer = harness.answer(OffsetFetchRequest(groups=(whole, part, other, whole, part)), 8)

    assert [each.group_id for each in answer.groups] == ["g", "g", "other", "g", "g"]
    found = [
        [each.committed_offset for topic in group.topics for each in topic.partitions]
        for group in answer.groups
    ]
    assert found == [[10, 11, 12], [11], [], [10, 11, 12], [11]]


def test_group_that_is_described_twice_is_returned_twice(harness: BrokerHarness) -> None:
    missing = GroupId("missing")

    answer = harness.answer(DescribeGroupsRequest(groups=(GROUP, missing, GROUP)), 5)

    assert [(each.group_id, each.group_state) for each in answer.groups] == [
        ("g", "Empty"),
        ("missing", "Dead"),
        ("g", "Empty"),
    ]


def test_partition_whose_offset_is_deleted_twice_is_returned_twice(harness: BrokerHarness) -> None:
    partitions = tuple(
        OffsetDeleteRequestPartition(partition_index=Partition(each)) for each in (1, 9, 1, 0)
    )
    topic = OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions)

    answer = harness.answer(OffsetDeleteRequest(group_id=GROUP, topics=(topic, topic)), 0)

    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for returned in answer.topics:
        codes = [(each.partition_index, each.error_code) for each in returned.partitions]
        assert codes == [(1, 0), (9, missing), (1, 0), (0, 0)]
    assert fetch_all(harness) == [2]
