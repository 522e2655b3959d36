"""DescribeLogDirs."""

from pathlib import Path

import pytest

from kohort.types import Partition, Topic
from kohort.wire.api.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tests.node.broker_harness import BrokerHarness, new_batch


def describe(
    harness: BrokerHarness, *wanted: tuple[str, list[int]], version: int = 5
) -> DescribeLogDirsResult:
    topics = tuple(
        DescribableLogDirTopic(topic=Topic(name), partitions=tuple(map(Partition, numbers)))
        for name, numbers in wanted
    )
    return answered(harness, DescribeLogDirsRequest(topics=topics), version)


def describe_all(harness: BrokerHarness, version: int = 5) -> DescribeLogDirsResult:
    return answered(harness, DescribeLogDirsRequest(topics=None), version)


def answered(
    harness: BrokerHarness, request: DescribeLogDirsRequest, version: int
) -> DescribeLogDirsResult:
    answer = harness.answer(request, version)
    (result,) = answer.results
    assert answer.error_code == result.error_code == 0
    found: DescribeLogDirsResult = result
    return found


def sizes(result: DescribeLogDirsResult) -> dict[str, dict[int, int]]:
    return {
        topic.name: {each.partition_index: each.partition_size for each in topic.partitions}
        for topic in result.topics
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_partition_has_the_size_of_its_log(harness: BrokerHarness, version: int) -> None:
    harness.create("orders", partitions=2)
    harness.produce(new_batch("a", "b"), "orders", 1)

    found = sizes(describe_all(harness, version))

    log = harness.broker.topics.catalog.partition(Topic("orders"), 1)
    assert log is not None
    assert log.size_bytes > 0
    assert found["orders"] == {0: 0, 1: log.size_bytes}


def test_directory_path_is_absolute(harness: BrokerHarness) -> None:
    found = Path(describe_all(harness).log_dir)

    assert found.is_absolute()
    assert (found / "kohort-catalog.json").exists()


def test_only_requested_partitions_are_returned(harness: BrokerHarness) -> None:
    harness.create("orders", partitions=3)
    harness.create("other", partitions=1)

    found = describe(harness, ("orders", [2]), ("orders", [0, 2, 7]), ("missing", [0]))

    assert sizes(found) == {"orders": {0: 0, 2: 0}}


def test_empty_request_returns_nothing(harness: BrokerHarness) -> None:
    harness.create("orders", partitions=1)

    assert sizes(describe(harness)) == {}
