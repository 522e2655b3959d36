"""DeleteRecords: raises the log start offset, so that earlier records are deleted."""

from typing import Final

from kohort.log.errors import RequestRejected, StorageError
from kohort.node.broker import Broker
from kohort.node.request import WROTE_FILES, Request, SlicedWork
from kohort.node.topics import is_internal
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK: Final = -1


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: DeleteRecordsRequest = request.body
    topics = []
    for topic in body.topics:
        partitions = []
        for requested in topic.partitions:
            partitions.append(
                _delete(broker, topic.name, requested.partition_index, requested.offset)
            )
            yield WROTE_FILES
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(partitions)))
    return DeleteRecordsResponse(topics=tuple(topics))


def _delete(
    broker: Broker, topic: Topic, partition: Partition, offset: Offset
) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = _delete_before(broker, topic, partition, offset)
    except (RequestRejected, StorageError) as error:
        broker.storage_errors.note(error)
        return DeleteRecordsPartitionResult(
            partition_index=partition, low_watermark=Offset(-1), error_code=error.code
        )
    return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=low_watermark)


def _delete_before(broker: Broker, topic: Topic, partition: Partition, offset: Offset) -> Offset:
    log = broker.topics.catalog.partition(topic, partition)
    if log is None:
        raise RequestRejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    if is_internal(topic):
        raise RequestRejected(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal")
    if log.settings.is_compacted and not log.settings.has_retention:
        raise RequestRejected(
            ErrorCode.POLICY_VIOLATION, f"{topic} is compacted, so its records cannot be deleted"
        )
    return log.delete_before(log.end_offset if offset == _HIGH_WATERMARK else offset)
