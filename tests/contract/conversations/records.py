"""Valid and damaged batches, and Produce, Fetch and ListOffsets requests."""

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
from kohort.wire.batch_header import HEADER_BYTES, assemble, peek
from tests.contract.conversations.session import Session

AT: Final = Millis(1_700_000_000_000)
"""The default timestamp of records."""


def batch(*values: str, at: int = AT, key: bytes | None = b"k", **fields: Any) -> bytes:
    """A batch with these values."""
    create_topic = tuple(
        NewRecord(key=key, value=each.encode(), timestamp=Millis(at)) for each in values
    )
    return encode(NewBatch(records=create_topic, **fields))


def idempotent_batch(
    *values: str, producer: int, epoch: int = 0, sequence: int = 0, **fields: Any
) -> bytes:
    """A batch from an idempotent producer."""
    return batch(
        *values,
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=sequence,
        **fields,
    )


def produce_request(
    topic: Topic, data: bytes | None, partition: int = 0, *, topic_id: Uuid, **fields: Any
) -> ProduceRequest:
    """A batch for one partition, by topic name and id; each version encodes one of them."""
    data_of_topic = TopicProduceData(
        name=topic,
        topic_id=topic_id,
        partition_data=(PartitionProduceData(index=partition, records=data),),
    )
    request = ProduceRequest(acks=-1, timeout_ms=Millis(10_000), topic_data=(data_of_topic,))
    return replace(request, **fields)


def fetch_request(
    topic: Topic,
    offset: int,
    *partitions: int,
    topic_id: Uuid,
    partition_fields: dict[str, Any] | None = None,
    **fields: Any,
) -> FetchRequest:
    """Fetch from an offset without waiting; partition 0 if none is named."""
    asked = tuple(
        replace(
            FetchPartition(
                partition=Partition(partition),
                fetch_offset=Offset(offset),
                partition_max_bytes=1 << 20,
            ),
            **(partition_fields or {}),
        )
        for partition in partitions or (0,)
    )
    request = FetchRequest(
        min_bytes=0,
        max_wait_ms=Millis(0),
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=asked),),
    )
    return replace(request, **fields)


def list_offsets_request(
    topic: Topic, timestamp: int, *partitions: int, epoch: int = -1, **fields: Any
) -> ListOffsetsRequest:
    """Find the offset of a timestamp; in partition 0 if none is named."""
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
    return replace(request, **fields)


def create_topic(
    session: Session, name: str = "t", partitions: int = 1, **configs: str
) -> tuple[Topic, Uuid]:
    """Create a topic; returns its name and id."""
    topic = session.topic(name, partitions, **configs)
    return topic, session.find_topic_id(topic)


def create_filled_topic(session: Session, *batches: bytes, **configs: str) -> tuple[Topic, Uuid]:
    """Create a topic with one partition that contains these batches."""
    topic, topic_id = create_topic(session, "t", 1, **configs)
    for data in batches:
        answer = session.query(produce_request(topic, data, topic_id=topic_id))
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
    return topic, topic_id


def with_header(data: bytes, **fields: Any) -> bytes:
    """A batch with changed header fields and a valid checksum."""
    return assemble(replace(peek(data), **fields), data[HEADER_BYTES:])
