"""CreatePartitions: adds partitions. Consumers see them when they refresh their metadata."""

from kohort.log.errors import RequestRejected, StorageError
from kohort.node.broker import Broker
from kohort.node.request import WROTE_FILES, Request, SlicedWork, count_in_slices
from kohort.node.topics import check_named_once, check_replicas
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: CreatePartitionsRequest = request.body
    counts = yield from count_in_slices(topic.name for topic in body.topics)
    results = []
    for topic in {each.name: each for each in body.topics}.values():
        try:
            check_named_once(topic.name, counts[topic.name])
            _check(broker, topic)
            if not body.validate_only:
                broker.topics.add_partitions(topic.name, topic.count)
        except (RequestRejected, StorageError) as error:
            broker.storage_errors.note(error)
            results.append(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=error.code, error_message=error.reason or None
                )
            )
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
        if len(results) < len(counts):
            yield WROTE_FILES
    return CreatePartitionsResponse(results=tuple(results))


def _check(broker: Broker, requested: CreatePartitionsTopic) -> None:
    topic = broker.topics.check_growth(requested.name, requested.count)
    if requested.assignments is None:
        return
    new = requested.count - topic.partition_count
    if len(requested.assignments) != new:
        reason = f"{len(requested.assignments)} replica assignments for {new} new partitions"
        raise RequestRejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    for assignment in requested.assignments:
        check_replicas(assignment.broker_ids, broker.node_id)
