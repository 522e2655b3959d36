"""OffsetForLeaderEpoch: there was only one leader, so its epoch ends at the end of the log."""

from kohort.log.limits import LEADER_EPOCH
from kohort.node.broker import Broker
from kohort.node.request import ITEMS_PER_SLICE, Request, SlicedWork
from kohort.node.topics import find_leader_epoch_error
from kohort.types import ErrorCode, Millis, Topic
from kohort.wire.api.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: OffsetForLeaderEpochRequest = request.body
    topics = []
    for topic in body.topics:
        partitions = []
        for requested in topic.partitions:
            partitions.append(_find_end(broker, topic.topic, requested))
            if not len(partitions) % ITEMS_PER_SLICE:
                yield
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(partitions)))
        if not len(topics) % ITEMS_PER_SLICE:
            yield
    return OffsetForLeaderEpochResponse(topics=tuple(topics))


def _find_end(broker: Broker, topic: Topic, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    log = broker.topics.catalog.partition(topic, requested.partition)
    if log is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return EpochEndOffset(partition=requested.partition, error_code=unknown)
    if log.is_refused:
        # Its end is unknown, and a lower one would make consumers reset their position.
        storage = ErrorCode.KAFKA_STORAGE_ERROR
        return EpochEndOffset(partition=requested.partition, error_code=storage)
    error = find_leader_epoch_error(requested.current_leader_epoch)
    if error is not None:
        return EpochEndOffset(partition=requested.partition, error_code=error)
    if requested.leader_epoch != LEADER_EPOCH:
        # An unknown epoch is not an error: the default values mean that there is none.
        return EpochEndOffset(partition=requested.partition)
    return EpochEndOffset(
        partition=requested.partition, leader_epoch=LEADER_EPOCH, end_offset=log.end_offset
    )
