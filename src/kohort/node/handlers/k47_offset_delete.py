"""OffsetDelete: refuses unknown topics; the coordinator handles the others."""

from collections.abc import Iterator

from kohort.coordinator.commands import DeleteOffsets, RequestedTopic
from kohort.coordinator.replies import DeleteOffsetsAnswered, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.request import PARKED, Request
from kohort.types import ErrorCode, Millis, Partition
from kohort.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(broker: Broker, request: Request, now: Millis) -> object:
    body: OffsetDeleteRequest = request.body
    has = broker.topics.has
    # Kept for the response: a topic may be deleted before it is sent.
    existing: list[dict[Partition, None]] = [
        {
            each.partition_index: None
            for each in topic.partitions
            if has(topic.name, each.partition_index)
        }
        for topic in body.topics
    ]
    request.context = existing
    command = DeleteOffsets(
        ticket=broker.park(request, _respond),
        group_id=body.group_id,
        topics=tuple(
            RequestedTopic(topic=topic.name, partitions=tuple(partitions))
            for topic, partitions in zip(body.topics, existing, strict=True)
            if partitions
        ),
    )
    broker.groups.submit(command, now)
    return PARKED


def _respond(request: Request, reply: Reply) -> OffsetDeleteResponse:
    match reply:
        case RequestRefused():
            return OffsetDeleteResponse(error_code=reply.error)
        case DeleteOffsetsAnswered():
            errors = (result.error for result in reply.results)
            return OffsetDeleteResponse(topics=tuple(_topics(request, errors)))
        case _:
            raise AssertionError(f"unexpected reply to offset delete: {reply}")


def _topics(request: Request, errors: Iterator[ErrorCode]) -> Iterator[OffsetDeleteResponseTopic]:
    body: OffsetDeleteRequest = request.body
    existing: list[dict[Partition, None]] = request.context
    for topic, known in zip(body.topics, existing, strict=True):
        # A partition that appears twice is deleted once.
        found = dict(zip(known, errors, strict=False))
        partitions = tuple(
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index,
                error_code=found.get(each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            )
            for each in topic.partitions
        )
        # As in Kafka, a topic without partitions is omitted.
        if partitions:
            yield OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)
