"""ListOffsets: where a partition begins, ends, or reaches a moment."""

from collections import Counter
from typing import Final

from kohort.log.errors import Refused, StorageError
from kohort.log.limits import LEADER_EPOCH
from kohort.log.lookup import Found
from kohort.log.partition import PartitionLog
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import find_epoch_fault
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
"""The version that brought each of the times that are none."""


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: ListOffsetsRequest = request.body
    counts = Counter(
        (topic.name, asked.partition_index) for topic in body.topics for asked in topic.partitions
    )
    found: dict[Topic, dict[Partition, ListOffsetsPartitionResponse]] = {}
    for topic in body.topics:
        partitions = found.setdefault(topic.name, {})
        for asked in topic.partitions:
            if counts[topic.name, asked.partition_index] > 1:
                partitions[asked.partition_index] = _refuse(asked, ErrorCode.INVALID_REQUEST)
            else:
                partitions[asked.partition_index] = _find(broker, topic.name, asked, request)
    topics = (
        ListOffsetsTopicResponse(name=name, partitions=tuple(partitions.values()))
        for name, partitions in found.items()
    )
    request.answer(ListOffsetsResponse(topics=tuple(topics)))


def _find(
    broker: Broker, topic: Topic, asked: ListOffsetsPartition, request: Request
) -> ListOffsetsPartitionResponse:
    version = request.version
    if asked.timestamp < 0 and version < _SINCE.get(asked.timestamp, version + 1):
        return _refuse(asked, ErrorCode.UNSUPPORTED_VERSION)
    log = broker.topics.catalog.partition(topic, asked.partition_index)
    if log is None:
        return _refuse(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    fault = find_epoch_fault(asked.current_leader_epoch)
    if fault is not None:
        return _refuse(asked, fault)
    is_committed_only = request.body.isolation_level == _READ_COMMITTED
    end = log.last_stable_offset if is_committed_only else log.end_offset
    try:
        found = _look(log, asked.timestamp, end)
    except (Refused, StorageError) as error:
        return _refuse(asked, error.code)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= 4 else -1,
    )


def _look(log: PartitionLog, timestamp: Millis, end: Offset) -> Found:
    if timestamp == _END:
        return _position(end)
    if timestamp in (_START, _LOCAL_START):
        return _position(log.start_offset)
    if timestamp in (_TIERED_END, _UPLOAD_START):
        # Nothing is tiered, and Kafka says so in the same way.
        return _NOTHING
    is_newest = timestamp == _NEWEST
    found = log.find_latest_time() if is_newest else log.find_by_time(timestamp)
    return found if found is not None and found.offset < end else _NOTHING


def _position(offset: Offset) -> Found:
    return Found(offset=offset, timestamp=Millis(-1), leader_epoch=LEADER_EPOCH)


_NOTHING: Final = Found(offset=Offset(-1), timestamp=Millis(-1), leader_epoch=-1)


def _refuse(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
