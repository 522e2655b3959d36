"""librdkafka, by its Python binding: a C library whose threads work on their own."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.node.clients.library import HEARTBEAT_MS, SESSION_MS, Fenced, Seen, Wanted, Written

_POLL_S = 0.05


class LibrdkafkaMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        self._topic = wanted.topic
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": wanted.group,
            "partition.assignment.strategy": wanted.assignor,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": wanted.commits_by_itself,
            "auto.commit.interval.ms": 100,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "session.timeout.ms": SESSION_MS,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 1000,
            "error_cb": lambda _: None,
        }
        if wanted.instance is not None:
            settings["group.instance.id"] = wanted.instance
        self.assignments = 0
        self._consumer = Consumer(settings)
        self._consumer.subscribe([wanted.topic], on_assign=self._assigned)

    def poll(self) -> list[Seen]:
        messages = self._consumer.consume(100, _POLL_S)
        return [seen for message in messages if (seen := self._see(message)) is not None]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            _raise_if_fenced(error.args[0])
            raise

    def committed(self, partition: int) -> int | None:
        (found,) = self._consumer.committed([TopicPartition(self._topic, partition)], 10)
        return None if found.offset < 0 else found.offset

    def position(self, partition: int) -> int:
        (found,) = self._consumer.position([TopicPartition(self._topic, partition)])
        return int(found.offset)

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition, offset))

    def span(self, partition: int) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), 10)
        return low, high

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        asked = TopicPartition(self._topic, partition, timestamp_ms)
        (found,) = self._consumer.offsets_for_times([asked], 10)
        return None if found.offset < 0 else found.offset

    def close(self) -> None:
        self._consumer.close()

    def _assigned(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.assignments += 1

    def _see(self, message: Message) -> Seen | None:
        error = message.error()
        if error is not None:
            _raise_if_fenced(error)
            assert error.retriable(), error
            return None
        kind, timestamp_ms = message.timestamp()
        assert kind == TIMESTAMP_CREATE_TIME
        return Seen(
            partition=_sure(message.partition()),
            offset=_sure(message.offset()),
            key=message.key(),
            value=message.value(),
            headers=tuple((name, _sure(text)) for name, text in _sure(message.headers() or [])),
            timestamp_ms=timestamp_ms,
        )


def _raise_if_fenced(error: KafkaError) -> None:
    if error.name() in ("_FATAL", "_FENCED", "FENCED_INSTANCE_ID"):
        raise Fenced(error.str())


def _sure(found: Any) -> Any:
    """What the binding says may be missing, and is not in a record that has come."""
    assert found is not None
    return found


class Librdkafka:
    name = "librdkafka"
    assignors: tuple[str, ...] = ("range", "roundrobin", "cooperative-sticky")
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
    knows_fencing = True

    def join(self, bootstrap_servers: str, wanted: Wanted) -> LibrdkafkaMember:
        return LibrdkafkaMember(bootstrap_servers, wanted)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "compression.type": codec,
                "enable.idempotence": is_idempotent,
                "acks": "all",
                "linger.ms": 5,
            }
        )
        offsets: dict[int, int] = {}

        def note(index: int, error: KafkaError | None, message: Message) -> None:
            if error is not None:
                raise KafkaException(error)
            offsets[index] = _sure(message.offset())

        for index, record in enumerate(records):
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                on_delivery=partial(note, index),
                # 0 stands for now.
                timestamp=record.timestamp_ms or 0,
            )
        assert producer.flush(20) == 0
        return [offsets[index] for index in range(len(records))]
