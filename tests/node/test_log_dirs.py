"""DescribeLogDirs: where the partitions are, and how large."""

from pathlib import Path

import pytest

from kohort.types import Partition, Topic
from kohort.wire.api.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tests.node.asking import Scene, new_batch


def describe(
    scene: Scene, *wanted: tuple[str, list[int]], version: int = 5
) -> DescribeLogDirsResult:
    topics = tuple(
        DescribableLogDirTopic(topic=Topic(name), partitions=tuple(map(Partition, numbers)))
        for name, numbers in wanted
    )
    return answered(scene, DescribeLogDirsRequest(topics=topics), version)


def describe_all(scene: Scene, version: int = 5) -> DescribeLogDirsResult:
    return answered(scene, DescribeLogDirsRequest(topics=None), version)


def answered(scene: Scene, request: DescribeLogDirsRequest, version: int) -> DescribeLogDirsResult:
    answer = scene.answer(request, version)
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
def test_every_partition_has_the_size_of_its_log(scene: Scene, version: int) -> None:
    scene.create("orders", partitions=2)
    scene.produce(new_batch("a", "b"), "orders", 1)

    found = sizes(describe_all(scene, version))

    log = scene.broker.topics.catalog.partition(Topic("orders"), 1)
    assert log is not None
    assert log.size_bytes > 0
    assert found["orders"] == {0: 0, 1: log.size_bytes}


def test_the_directory_is_named_in_full(scene: Scene) -> None:
    found = Path(describe_all(scene).log_dir)

    assert found.is_absolute()
    assert (found / "kohort-catalog.json").exists()


def test_only_what_was_asked_for_is_told(scene: Scene) -> None:
    scene.create("orders", partitions=3)
    scene.create("other", partitions=1)

    found = describe(scene, ("orders", [2]), ("orders", [0, 2, 7]), ("missing", [0]))

    assert sizes(found) == {"orders": {0: 0, 2: 0}}


def test_nothing_is_told_where_nothing_was_asked(scene: Scene) -> None:
    scene.create("orders", partitions=1)

    assert sizes(describe(scene)) == {}
