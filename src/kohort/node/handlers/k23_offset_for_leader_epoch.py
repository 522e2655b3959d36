"""OffsetForLeaderEpoch: there has only been one leader, whose epoch ends where the log does."""

from kohort.log.limits import LEADER_EPOCH
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import find_epoch_fault
from kohort.types import ErrorCode, Millis, Topic
from kohort.wire.api.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: OffsetForLeaderEpochRequest = request.body
    request.answer(
        OffsetForLeaderEpochResponse(
            topics=tuple(
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=tuple(
                        _find_end(broker, topic.topic, asked) for asked in topic.partitions
                    ),
                )
                for topic in body.topics
            )
        )
    )


def _find_end(broker: Broker, topic: Topic, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    log = broker.topics.catalog.partition(topic, asked.partition)
    if log is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return EpochEndOffset(partition=asked.partition, error_code=error)
    fault = find_epoch_fault(asked.current_leader_epoch)
    if fault is not None:
        return EpochEndOffset(partition=asked.partition, error_code=fault)
    if asked.leader_epoch != LEADER_EPOCH:
        # Not an error: nothing is known of such an epoch, and the defaults say so.
        return EpochEndOffset(partition=asked.partition)
    return EpochEndOffset(
        partition=asked.partition, leader_epoch=LEADER_EPOCH, end_offset=log.end_offset
    )
