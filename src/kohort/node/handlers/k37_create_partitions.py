"""CreatePartitions: a topic grows, and its groups notice when they next look."""

from collections import Counter

from kohort.log.errors import Refused, StorageError
from kohort.node.broker import Broker
from kohort.node.placement import check_replicas
from kohort.node.request import Request
from kohort.node.topics import check_single
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: CreatePartitionsRequest = request.body
    counts = Counter(topic.name for topic in body.topics)
    results = []
    for topic in {each.name: each for each in body.topics}.values():
        try:
            check_single(topic.name, counts[topic.name])
            _check(broker, topic)
            if not body.validate_only:
                broker.topics.add_partitions(topic.name, topic.count, now)
        except (Refused, StorageError) as error:
            results.append(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=error.code, error_message=error.reason or None
                )
            )
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    request.answer(CreatePartitionsResponse(results=tuple(results)))


def _check(broker: Broker, asked: CreatePartitionsTopic) -> None:
    topic = broker.topics.check_growth(asked.name, asked.count)
    if asked.assignments is None:
        return
    new = asked.count - topic.partition_count
    if len(asked.assignments) != new:
        reason = f"{len(asked.assignments)} assignments for {new} new partitions"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    for assignment in asked.assignments:
        check_replicas(assignment.broker_ids, broker.node_id)
