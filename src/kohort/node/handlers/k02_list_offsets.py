"""ListOffsets: the first offset, the last offset, or the offset for a timestamp."""

from typing import Final

from kohort.log.errors import RequestRejected, StorageError
from kohort.log.limits import LEADER_EPOCH
from kohort.log.log_segments import TimestampAndOffset
from kohort.log.partition import PartitionLog
from kohort.node.broker import Broker
from kohort.node.request import (
    ITEMS_PER_SLICE,
    NAMED_PER_SLICE,
    Request,
    SlicedWork,
    count_in_slices,
)
from kohort.node.topics import find_leader_epoch_error
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

_END, _START, _NEWEST, _LOCAL_START, _TIERED_END, _UPLOAD_START = -1, -2, -3, -4, -5, -6

_READ_COMMITTED: Final = 1

_SINCE: Final = {
    _END: 1,
    _START: 1,
    _NEWEST: 7,
    _LOCAL_START: 8,
    _TIERED_END: 9,
    _UPLOAD_START: 11,
}
"""The first version of each special timestamp."""


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: ListOffsetsRequest = request.body
    counts = yield from count_in_slices(
        (topic.name, requested.partition_index)
        for topic in body.topics
        for requested in topic.partitions
    )
    found: dict[Topic, dict[Partition, ListOffsetsPartitionResponse]] = {}
    left = ITEMS_PER_SLICE
    for topic in body.topics:
        partitions = found.setdefault(topic.name, {})
        left -= 1
        for requested in topic.partitions:
            if counts[topic.name, requested.partition_index] > 1:
                partitions[requested.partition_index] = _refuse(
                    requested, ErrorCode.INVALID_REQUEST
                )
            else:
                partitions[requested.partition_index] = _find(
                    broker, topic.name, requested, request
                )
            is_search = requested.timestamp >= 0 or requested.timestamp == _NEWEST
            left -= ITEMS_PER_SLICE if is_search else 1
            if left <= 0:
                yield
                left = ITEMS_PER_SLICE
    topics = []
    for name, partitions in found.items():
        topics.append(ListOffsetsTopicResponse(name=name, partitions=tuple(partitions.values())))
        if not len(topics) % NAMED_PER_SLICE:
            yield
    return ListOffsetsResponse(topics=tuple(topics))


def _find(
    broker: Broker, topic: Topic, requested: ListOffsetsPartition, request: Request
) -> ListOffsetsPartitionResponse:
    version = request.version
    if requested.timestamp < 0 and version < _SINCE.get(requested.timestamp, version + 1):
        return _refuse(requested, ErrorCode.UNSUPPORTED_VERSION)
    log = broker.topics.catalog.partition(topic, requested.partition_index)
    if log is None:
        return _refuse(requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = find_leader_epoch_error(requested.current_leader_epoch)
    if error is not None:
        return _refuse(requested, error)
    is_committed_only = request.body.isolation_level == _READ_COMMITTED
    end = log.last_stable_offset if is_committed_only else log.end_offset
    try:
        log.check_usable()
        found = _look(log, requested.timestamp, end)
    except (RequestRejected, StorageError) as failure:
        broker.storage_errors.note(failure)
        return _refuse(requested, failure.code)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= 4 else -1,
    )


def _look(log: PartitionLog, timestamp: Millis, end: Offset) -> TimestampAndOffset:
    if timestamp == _END:
        return _position(end)
    if timestamp in (_START, _LOCAL_START):
        return _position(log.start_offset)
    if timestamp in (_TIERED_END, _UPLOAD_START):
        # As in Kafka without tiered storage.
        return _NOTHING
    is_newest = timestamp == _NEWEST
    found = log.find_max_timestamp() if is_newest else log.find_by_timestamp(timestamp)
    return found if found is not None and found.offset < end else _NOTHING


def _position(offset: Offset) -> TimestampAndOffset:
    return TimestampAndOffset(offset=offset, timestamp=Millis(-1), leader_epoch=LEADER_EPOCH)


_NOTHING: Final = TimestampAndOffset(offset=Offset(-1), timestamp=Millis(-1), leader_epoch=-1)


def _refuse(requested: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=error)
