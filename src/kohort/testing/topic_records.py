"""Writes records to topics and reads whole topics, as an ordinary client.

One call sends one request to each leader at a time and waits for the responses.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import error_from_code
from kohort.admin.offsets import list_offsets
from kohort.admin.router import LEADER_RETRIABLE
from kohort.client.fetch.completed_fetch import CompletedFetch, FetchConfig, FetchPosition
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic, TopicPartition
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kohort.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kohort.wire.batch import NewBatch, encode
from kohort.wire.records import NewRecord

_BATCH_BYTES_MAX: Final = 512 * 1024
"""Of keys, values and headers; half of the largest batch that brokers accept by default."""

_ALL_IN_SYNC: Final = -1

_RETRIABLE: Final = LEADER_RETRIABLE - {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR}
"""After other errors the records may have been written, and must not be written again."""

_FETCH_VERSION_MAX: Final = 12
"""Later versions identify topics by id."""

_PARTITION_BYTES_MAX: Final = 8 * 1024 * 1024
_FETCH_BYTES_MAX: Final = 32 * 1024 * 1024
"""Limits the memory of one response; a topic may have more, in several responses."""

_ALL: Final = 2**31 - 1


def produce(cluster: Cluster, records: Iterable[tuple[TopicPartition, NewRecord]]) -> list[Offset]:
    """The offsets, in the order of the records. Raises an AdminError.

    If the connection is lost before the response, the records are sent again, so that they may be
    written twice.
    """
    placed = list(records)
    waiting: defaultdict[TopicPartition, list[int]] = defaultdict(list)
    for index, (partition, _) in enumerate(placed):
        waiting[partition].append(index)
    offsets = [Offset(-1)] * len(placed)
    while waiting:
        sent = {each: _fitting(indexes, placed) for each, indexes in waiting.items()}
        batches = {
            each: encode(NewBatch(records=tuple(placed[index][1] for index in indexes)))
            for each, indexes in sent.items()
        }
        for partition, first in _append(cluster, batches).items():
            indexes = sent[partition]
            for offset, index in enumerate(indexes, first):
                offsets[index] = Offset(offset)
            del waiting[partition][: len(indexes)]
            if not waiting[partition]:
                del waiting[partition]
    return offsets


def _fitting(
    indexes: Sequence[int], placed: Sequence[tuple[TopicPartition, NewRecord]]
) -> list[int]:
    """The first records that fit into one batch: at least one."""
    size = 0
    for count, index in enumerate(indexes):
        size += _size(placed[index][1])
        if count and size > _BATCH_BYTES_MAX:
            return list(indexes[:count])
    return list(indexes)


def _size(record: NewRecord) -> int:
    headers = sum(len(each.key) + len(each.value or b"") for each in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + 16


def _append(
    cluster: Cluster, batches: Mapping[TopicPartition, bytes]
) -> dict[TopicPartition, Offset]:
    """The offset of the first record of each batch."""
    responses = cluster.router.send_to_leaders(
        batches,
        lambda chunk: _produce_request(chunk, batches, cluster.timeout_ms),
        _split_produced,
        retriable=_RETRIABLE,
    )
    found: dict[TopicPartition, Offset] = {}
    for partition, response in responses.items():
        if response.error_code != ErrorCode.NONE or response.body is None:
            detail = None if response.body is None else response.body.error_message
            what = f"records cannot be written to {partition.topic}:{partition.partition}"
            raise error_from_code(response.error_code, what, detail)
        found[partition] = response.body.base_offset
    return found


def read_topic(
    cluster: Cluster, partitions: Iterable[TopicPartition], start: Offset
) -> list[ConsumerRecord]:
    """The records from `start` to the log end now; by partition, then by offset."""
    positions = dict.fromkeys(partitions, start)
    ends: dict[TopicPartition, Offset] = {}
    found: dict[TopicPartition, list[ConsumerRecord]] = {each: [] for each in positions}
    while positions:
        reached: dict[TopicPartition, Offset] = {}
        for partition, data in _fetch(cluster, positions).items():
            position = positions[partition]
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                reached |= _find_start(cluster, partition, position)
                continue
            # Records that are written while this reads are left out.
            end = ends.setdefault(partition, data.high_watermark)
            records, after = _decode(partition, data.records or b"", position)
            found[partition] += (record for record in records if record.offset < end)
            if after < end:
                reached[partition] = after
        # Compaction may remove the last records, so that a log ends before its end offset.
        positions = {} if reached == positions else reached
    return [record for partition in sorted(found) for record in found[partition]]


def _fetch(
    cluster: Cluster, positions: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, PartitionData]:
    responses = cluster.router.send_to_leaders(
        positions,
        lambda chunk: _fetch_request(chunk, positions),
        _split_fetched,
        version_max=_FETCH_VERSION_MAX,
    )
    found: dict[TopicPartition, PartitionData] = {}
    for partition, response in responses.items():
        code = response.error_code
        if response.body is None or code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
            what = f"{partition.topic}:{partition.partition} cannot be read"
            raise error_from_code(code, what, response.error_message)
        found[partition] = response.body
    return found


def _find_start(
    cluster: Cluster, partition: TopicPartition, position: Offset
) -> dict[TopicPartition, Offset]:
    """The log start, if records before it were deleted; nothing if `position` is after the end."""
    first = list_offsets(cluster, [partition], "earliest")
    return {each: offset for each, offset in first.items() if offset > position}


def _decode(
    partition: TopicPartition, content: bytes, position: Offset
) -> tuple[list[ConsumerRecord], Offset]:
    """The records, and the offset after them. Markers of transactions are not records."""
    if not content:
        return [], position
    fetch = CompletedFetch(partition, content, FetchPosition(offset=position), FetchConfig())
    return fetch.take(_ALL), fetch.end.offset


# Messages


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[Topic, list[TopicPartition]]:
    by_topic: defaultdict[Topic, list[TopicPartition]] = defaultdict(list)
    for each in partitions:
        by_topic[each.topic].append(each)
    return by_topic


def _produce_request(
    partitions: Iterable[TopicPartition],
    batches: Mapping[TopicPartition, bytes],
    timeout_ms: Millis,
) -> ProduceRequest:
    topics = tuple(
        TopicProduceData(
            name=topic,
            partition_data=tuple(
                PartitionProduceData(index=each.partition, records=batches[each]) for each in chunk
            ),
        )
        for topic, chunk in _by_topic(partitions).items()
    )
    return ProduceRequest(acks=_ALL_IN_SYNC, timeout_ms=timeout_ms, topic_data=topics)


def _split_produced(
    response: ProduceResponse,
) -> Iterator[tuple[TopicPartition, int, PartitionProduceResponse]]:
    for topic in response.responses:
        for each in topic.partition_responses:
            yield TopicPartition(topic.name, Partition(each.index)), each.error_code, each


def _fetch_request(
    partitions: Iterable[TopicPartition], positions: Mapping[TopicPartition, Offset]
) -> FetchRequest:
    topics = tuple(
        FetchTopic(
            topic=topic,
            partitions=tuple(
                FetchPartition(
                    partition=each.partition,
                    fetch_offset=positions[each],
                    partition_max_bytes=_PARTITION_BYTES_MAX,
                )
                for each in chunk
            ),
        )
        for topic, chunk in _by_topic(partitions).items()
    )
    return FetchRequest(
        max_wait_ms=Millis(0), min_bytes=0, max_bytes=_FETCH_BYTES_MAX, topics=topics
    )


def _split_fetched(
    response: FetchResponse,
) -> Iterator[tuple[TopicPartition, int, PartitionData]]:
    for topic in response.responses:
        for each in topic.partitions:
            yield TopicPartition(topic.topic, each.partition_index), each.error_code, each
