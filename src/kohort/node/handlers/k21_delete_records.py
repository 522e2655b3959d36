"""DeleteRecords: everything before an offset is given up at once, and for all readers."""

from typing import Final

from kohort.log.errors import Refused, StorageError
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import is_internal
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK: Final = -1


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: DeleteRecordsRequest = request.body
    response = DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _delete(broker, topic.name, asked.partition_index, asked.offset)
                    for asked in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )
    request.answer(response)


def _delete(
    broker: Broker, topic: Topic, partition: Partition, offset: Offset
) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = _delete_before(broker, topic, partition, offset)
    except (Refused, StorageError) as error:
        return DeleteRecordsPartitionResult(
            partition_index=partition, low_watermark=Offset(-1), error_code=error.code
        )
    return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=low_watermark)


def _delete_before(broker: Broker, topic: Topic, partition: Partition, offset: Offset) -> Offset:
    log = broker.topics.catalog.partition(topic, partition)
    if log is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    if is_internal(topic):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is this node's own")
    if log.settings.is_compacted and not log.settings.is_deleted:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted, its records stay")
    return log.delete_before(log.end_offset if offset == _HIGH_WATERMARK else offset)
