"""DescribeTopicPartitions: pages through the partitions, ordered by topic name."""

from collections.abc import Generator, Iterable
from typing import Final

from kohort.log.catalog_file import CatalogTopic
from kohort.log.limits import LEADER_EPOCH
from kohort.node.authorized_operations import NOT_REQUESTED, TOPIC_OPERATIONS
from kohort.node.broker import Broker
from kohort.node.request import ITEMS_PER_SLICE, Request, SlicedWork
from kohort.node.topics import is_internal, unknown_topic_error
from kohort.types import ErrorCode, Millis, Partition, Topic
from kohort.wire.api.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

_BAD_CURSOR: Final = ErrorCode.INVALID_REQUEST

_PAGE_MAX: Final = 2000
"""Partitions in one response; protects memory. Kafka's max.request.partition.size.limit."""


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: DescribeTopicPartitionsRequest = request.body
    names = _names(broker, body)
    if names is None:
        return DescribeTopicPartitionsResponse(
            topics=tuple(_error_topic(t.name, _BAD_CURSOR) for t in body.topics)
        )
    return (yield from _page(broker, names, body))


def _names(broker: Broker, body: DescribeTopicPartitionsRequest) -> list[Topic] | None:
    """The topic names from the cursor on, in order; None if the cursor is invalid."""
    requested: Iterable[Topic] = (topic.name for topic in body.topics)
    if not body.topics:
        requested = (topic.name for topic in broker.topics.all())
    names = set(requested)
    if body.cursor is not None:
        is_missing = bool(body.topics) and body.cursor.topic_name not in names
        if is_missing or body.cursor.partition_index < 0:
            return None
    first = Topic("") if body.cursor is None else body.cursor.topic_name
    return sorted(name for name in names if name >= first)


def _page(
    broker: Broker, names: list[Topic], body: DescribeTopicPartitionsRequest
) -> Generator[None, Millis, DescribeTopicPartitionsResponse]:
    left = max(1, min(_PAGE_MAX, body.response_partition_limit))
    first = Partition(0) if body.cursor is None else body.cursor.partition_index
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for index, name in enumerate(names, 1):
        if not index % ITEMS_PER_SLICE:
            yield
        if body.cursor is None or name != body.cursor.topic_name:
            first = Partition(0)
        if left == 0:
            return _with_cursor(topics, name, first)
        topic = broker.topics.find(name)
        if topic is None:
            # DEVIATION: Kafka returns UNKNOWN_SERVER_ERROR for an empty name.
            topics.append(_error_topic(name, unknown_topic_error(name)))
            continue
        end = Partition(min(topic.partition_count, first + left))
        topics.append(_topic(broker, topic, first, end))
        if end < topic.partition_count:
            return _with_cursor(topics, name, end)
        left -= max(0, end - first)
    return DescribeTopicPartitionsResponse(topics=tuple(topics))


def _with_cursor(
    topics: list[DescribeTopicPartitionsResponseTopic], name: Topic, partition: Partition
) -> DescribeTopicPartitionsResponse:
    cursor = Cursor(topic_name=name, partition_index=partition)
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _topic(
    broker: Broker, topic: CatalogTopic, first: Partition, end: Partition
) -> DescribeTopicPartitionsResponseTopic:
    replicas = (broker.node_id,)
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                partition_index=Partition(index),
                leader_id=broker.node_id,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=replicas,
                isr_nodes=replicas,
                eligible_leader_replicas=(),
                last_known_elr=(),
            )
            for index in range(first, end)
        ),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _error_topic(name: Topic, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=error,
        is_internal=is_internal(name),
        topic_authorized_operations=NOT_REQUESTED if error is _BAD_CURSOR else TOPIC_OPERATIONS,
    )
