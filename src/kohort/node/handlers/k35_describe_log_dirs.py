"""DescribeLogDirs: the one directory of this node, and the size of every partition in it."""

from collections.abc import Iterator
from pathlib import Path

from kohort.log.catalog import Catalog
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import Millis, Partition, Topic
from kohort.wire.api.k35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: DescribeLogDirsRequest = request.body
    catalog = broker.topics.catalog
    # DEVIATION: the size of the volume is not told: it is the machine's, whose own tools know it.
    directory = DescribeLogDirsResult(
        log_dir=str(Path(catalog.directory).absolute()),
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(_partitions(catalog, name, wanted)))
            for name, wanted in _wanted(catalog, body)
        ),
    )
    request.answer(DescribeLogDirsResponse(results=(directory,)))


def _wanted(
    catalog: Catalog, body: DescribeLogDirsRequest
) -> Iterator[tuple[Topic, set[Partition]]]:
    """Topics that exist, with the partitions asked for. What does not exist is left out."""
    if body.topics is None:
        for topic in catalog.topics:
            yield topic.name, {Partition(number) for number in range(topic.partition_count)}
        return
    asked: dict[Topic, set[Partition]] = {}
    for each in body.topics:
        if catalog.find_topic(each.topic) is not None:
            asked.setdefault(each.topic, set()).update(each.partitions)
    yield from asked.items()


def _partitions(
    catalog: Catalog, name: Topic, wanted: set[Partition]
) -> Iterator[DescribeLogDirsPartition]:
    for number in sorted(wanted):
        log = catalog.partition(name, number)
        if log is not None:
            yield DescribeLogDirsPartition(partition_index=number, partition_size=log.size_bytes)
