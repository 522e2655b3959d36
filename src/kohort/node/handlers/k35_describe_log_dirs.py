"""DescribeLogDirs: the data directory, and the size of each partition in it."""

from collections.abc import Iterator
from pathlib import Path

from kohort.log.catalog import Catalog
from kohort.node.broker import Broker
from kohort.node.request import ITEMS_PER_SLICE, Request, SlicedWork
from kohort.types import Millis, Partition, Topic
from kohort.wire.api.k35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: DescribeLogDirsRequest = request.body
    catalog = broker.topics.catalog
    topics = []
    left = ITEMS_PER_SLICE
    for name, requested in _find_requested(catalog, body):
        partitions = tuple(_partitions(catalog, name, requested))
        topics.append(DescribeLogDirsTopic(name=name, partitions=partitions))
        left -= 1 + len(requested)
        if left <= 0:
            yield
            left = ITEMS_PER_SLICE
    # DEVIATION: the size of the volume is not returned.
    directory = DescribeLogDirsResult(
        log_dir=str(Path(catalog.directory).absolute()), topics=tuple(topics)
    )
    return DescribeLogDirsResponse(results=(directory,))


def _find_requested(
    catalog: Catalog, body: DescribeLogDirsRequest
) -> Iterator[tuple[Topic, set[Partition]]]:
    """The requested topics and partitions that exist."""
    if body.topics is None:
        for topic in catalog.topics:
            yield topic.name, {Partition(number) for number in range(topic.partition_count)}
        return
    requested: dict[Topic, set[Partition]] = {}
    for each in body.topics:
        if catalog.find_topic(each.topic) is not None:
            requested.setdefault(each.topic, set()).update(each.partitions)
    yield from requested.items()


def _partitions(
    catalog: Catalog, name: Topic, requested: set[Partition]
) -> Iterator[DescribeLogDirsPartition]:
    for number in sorted(requested):
        log = catalog.partition(name, number)
        if log is not None:
            yield DescribeLogDirsPartition(partition_index=number, partition_size=log.size_bytes)
