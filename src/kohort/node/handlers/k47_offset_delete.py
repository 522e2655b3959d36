"""OffsetDelete: topics that do not exist are answered here, the rest goes to the coordinator."""

from collections.abc import Iterator

from kohort.coordinator.commands import DeleteOffsets, TopicPartitions
from kohort.coordinator.replies import DeleteOffsetsAnswered, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: OffsetDeleteRequest = request.body
    known = tuple(
        TopicPartitions(topic=topic.name, partitions=partitions)
        for topic in body.topics
        if (
            partitions := tuple(
                each.partition_index
                for each in topic.partitions
                if broker.topics.has(topic.name, each.partition_index)
            )
        )
    )

    def deliver(reply: Reply) -> None:
        request.answer(_respond(broker, body, reply))

    ticket = broker.groups.issue(deliver)
    command = DeleteOffsets(ticket=ticket, group_id=body.group_id, topics=known)
    broker.groups.submit(command, now)


def _respond(broker: Broker, body: OffsetDeleteRequest, reply: Reply) -> OffsetDeleteResponse:
    match reply:
        case Refused():
            return OffsetDeleteResponse(error_code=reply.error)
        case DeleteOffsetsAnswered():
            errors = (result.error for result in reply.results)
            return OffsetDeleteResponse(topics=tuple(_topics(broker, body, errors)))
        case _:
            raise AssertionError(f"an offset delete cannot be answered with {reply}")


def _topics(
    broker: Broker, body: OffsetDeleteRequest, errors: Iterator[ErrorCode]
) -> Iterator[OffsetDeleteResponseTopic]:
    for topic in body.topics:
        partitions = tuple(
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index,
                error_code=(
                    next(errors)
                    if broker.topics.has(topic.name, each.partition_index)
                    else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                ),
            )
            for each in topic.partitions
        )
        # Kafka says nothing of a topic of which no partition was named.
        if partitions:
            yield OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)
