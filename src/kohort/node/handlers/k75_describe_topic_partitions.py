"""DescribeTopicPartitions: topics in the order of their names, so many partitions at a time."""

from collections.abc import Iterable
from typing import Final

from kohort.log.catalog_file import KeptTopic
from kohort.log.limits import LEADER_EPOCH
from kohort.node.broker import Broker
from kohort.node.operations import NOT_ASKED, TOPIC_OPERATIONS
from kohort.node.request import Request
from kohort.node.topics import is_internal, missing_error
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
"""Partitions in one answer; protects memory. Kafka's max.request.partition.size.limit."""


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: DescribeTopicPartitionsRequest = request.body
    names = _names(broker, body)
    if names is None:
        request.answer(
            DescribeTopicPartitionsResponse(
                topics=tuple(_refused(t.name, _BAD_CURSOR) for t in body.topics)
            )
        )
    else:
        request.answer(_page(broker, names, body))


def _names(broker: Broker, body: DescribeTopicPartitionsRequest) -> list[Topic] | None:
    """The topics from the cursor on, in order; None where the cursor cannot be."""
    asked: Iterable[Topic] = (topic.name for topic in body.topics)
    if not body.topics:
        asked = (topic.name for topic in broker.topics.all())
    names = set(asked)
    if body.cursor is not None:
        is_missing = bool(body.topics) and body.cursor.topic_name not in names
        if is_missing or body.cursor.partition_index < 0:
            return None
    first = Topic("") if body.cursor is None else body.cursor.topic_name
    return sorted(name for name in names if name >= first)


def _page(
    broker: Broker, names: list[Topic], body: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    left = max(1, min(_PAGE_MAX, body.response_partition_limit))
    first = Partition(0) if body.cursor is None else body.cursor.partition_index
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if body.cursor is None or name != body.cursor.topic_name:
            first = Partition(0)
        if left == 0:
            return _with_more(topics, name, first)
        topic = broker.topics.find(name)
        if topic is None:
            # DEVIATION: over an empty name Kafka fails as over its own fault.
            topics.append(_refused(name, missing_error(name)))
            continue
        end = Partition(min(topic.partition_count, first + left))
        topics.append(_topic(broker, topic, first, end))
        if end < topic.partition_count:
            return _with_more(topics, name, end)
        left -= max(0, end - first)
    return DescribeTopicPartitionsResponse(topics=tuple(topics))


def _with_more(
    topics: list[DescribeTopicPartitionsResponseTopic], name: Topic, partition: Partition
) -> DescribeTopicPartitionsResponse:
    cursor = Cursor(topic_name=name, partition_index=partition)
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _topic(
    broker: Broker, topic: KeptTopic, first: Partition, end: Partition
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


def _refused(name: Topic, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=error,
        is_internal=is_internal(name),
        topic_authorized_operations=NOT_ASKED if error is _BAD_CURSOR else TOPIC_OPERATIONS,
    )
