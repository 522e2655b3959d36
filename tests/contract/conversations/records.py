"""Batches to produce, whole and damaged, and the requests that carry and fetch them."""

from dataclasses import replace
from typing import Any, Final

from kohort.types import BrokerId, Millis, Offset, Partition, ProducerEpoch, ProducerId, Topic, Uuid
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.batch_header import HEADER_BYTES, peek, seal
from tests.contract.conversations.talking import Talk

AT: Final = Millis(1_700_000_000_000)
"""When records of conversations are from, unless they say otherwise."""


def batch(*values: str, at: int = AT, key: bytes | None = b"k", **words: Any) -> bytes:
    """Records with these values, as a producer sends them."""
    made = tuple(NewRecord(key=key, value=each.encode(), timestamp=Millis(at)) for each in values)
    return encode(NewBatch(records=made, **words))


def numbered(*values: str, producer: int, epoch: int = 0, sequence: int = 0, **words: Any) -> bytes:
    """The same from an idempotent producer."""
    return batch(
        *values,
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=sequence,
        **words,
    )


def producing(
    topic: Topic, data: bytes | None, partition: int = 0, *, topic_id: Uuid, **words: Any
) -> ProduceRequest:
    """A batch for one partition, by name and by id: a version takes the one that it knows."""
    told = TopicProduceData(
        name=topic,
        topic_id=topic_id,
        partition_data=(PartitionProduceData(index=partition, records=data),),
    )
    request = ProduceRequest(acks=-1, timeout_ms=Millis(10_000), topic_data=(told,))
    return replace(request, **words)


def fetching(
    topic: Topic,
    offset: int,
    *partitions: int,
    topic_id: Uuid,
    partition_words: dict[str, Any] | None = None,
    **words: Any,
) -> FetchRequest:
    """What is there from an offset on, without waiting, of the first partition if none is named."""
    asked = tuple(
        replace(
            FetchPartition(
                partition=Partition(partition),
                fetch_offset=Offset(offset),
                partition_max_bytes=1 << 20,
            ),
            **(partition_words or {}),
        )
        for partition in partitions or (0,)
    )
    request = FetchRequest(
        min_bytes=0,
        max_wait_ms=Millis(0),
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=asked),),
    )
    return replace(request, **words)


def listing(
    topic: Topic, timestamp: int, *partitions: int, epoch: int = -1, **words: Any
) -> ListOffsetsRequest:
    """Where a moment is, in the first partition if none is named."""
    asked = tuple(
        ListOffsetsPartition(
            partition_index=Partition(partition),
            timestamp=Millis(timestamp),
            current_leader_epoch=epoch,
        )
        for partition in partitions or (0,)
    )
    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        topics=(ListOffsetsTopic(name=topic, partitions=asked),),
        timeout_ms=Millis(5000),
    )
    return replace(request, **words)


def made(talk: Talk, name: str = "t", partitions: int = 1, **configs: str) -> tuple[Topic, Uuid]:
    """A topic, and its id."""
    topic = talk.topic(name, partitions, **configs)
    return topic, talk.find_topic_id(topic)


def filled(talk: Talk, *batches: bytes, **configs: str) -> tuple[Topic, Uuid]:
    """A topic with one partition, and these batches in it."""
    topic, topic_id = made(talk, "t", 1, **configs)
    for data in batches:
        answer = talk.peek(producing(topic, data, topic_id=topic_id))
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
    return topic, topic_id


def changed(data: bytes, **fields: Any) -> bytes:
    """A batch with another header, whose checksum is right all the same."""
    return seal(replace(peek(data), **fields), data[HEADER_BYTES:])
