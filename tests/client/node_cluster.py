"""A node with topics and records, and consumers with short timeouts."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

import kohort
from kohort.client.consumer import Consumer
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.node.broker import Address
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.node.raw_client import RawClient
from tests.wait import wait_until

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "auto.create.topics.enable": False,
    # Some records are years old; retention must not delete them during a run.
    "log.retention.ms": -1,
}

QUICK: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 1_500,
    "heartbeat_interval_ms": 100,
    "fetch_max_wait_ms": 50,
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 100,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 100,
    "default_api_timeout_ms": 20_000,
}
"""Short timeouts for tests."""

_RUN = os.getpid()
_NUMBERS = itertools.count()
"""Unique, also on a broker that outlives this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducedRecord:
    """A record to be produced."""

    partition: int = 0
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    bootstrap_servers: str

    @property
    def address(self) -> Address:
        host, _, port = self.bootstrap_servers.rpartition(":")
        return Address(host=host, port=int(port))

    def ask(self, body: object, version: int) -> Any:
        with RawClient(self.address) as caller:
            return caller.ask(body, version)

    def create_topic(self, partitions: int = 1, name: str | None = None) -> Topic:
        """A new topic, with a unique name by default."""
        topic = Topic(name or f"topic-{_RUN}-{next(_NUMBERS)}")
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=(wanted,), timeout_ms=Millis(10_000))
        (result,) = self.ask(request, 7).topics
        assert result.error_code == 0, result
        return topic

    def add_partitions(self, topic: Topic, count: int) -> None:
        wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=(wanted,), timeout_ms=Millis(10_000))
        (result,) = self.ask(request, 3).results
        assert result.error_code == 0, result

    def delete_before(self, partition: TopicPartition, offset: int) -> None:
        wanted = DeleteRecordsTopic(
            name=partition.topic,
            partitions=(
                DeleteRecordsPartition(partition_index=partition.partition, offset=Offset(offset)),
            ),
        )
        request = DeleteRecordsRequest(topics=(wanted,), timeout_ms=Millis(10_000))
        (topic,) = self.ask(request, 2).topics
        assert topic.partitions[0].error_code == 0, topic

    def produce(
        self, topic: Topic, records: Sequence[ProducedRecord] | int, *, codec: str = "none"
    ) -> None:
        """Produce these records, or `count` numbered ones to partition 0."""
        if isinstance(records, int):
            records = [ProducedRecord(value=b"%d" % number) for number in range(records)]
        settings = {"bootstrap.servers": self.bootstrap_servers, "compression.type": codec}
        producer = Producer({**settings, "acks": "all", "linger.ms": 5})
        failures: list[object] = []
        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                # 0 means now.
                timestamp=record.timestamp_ms or 0,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(20) == 0
        producer.close()
        assert not failures, failures

    def name_group(self) -> str:
        return f"group-{_RUN}-{next(_NUMBERS)}"

    @contextmanager
    def consumer(self, **options: Any) -> Iterator[Consumer]:
        """A consumer in its own group by default."""
        given = {**QUICK, "group_id": self.name_group(), **options}
        with kohort.Consumer(bootstrap_servers=self.bootstrap_servers, **given) as consumer:
            yield consumer

    def open_consumer(self, **options: Any) -> Consumer:
        """The caller must close it."""
        given = {**QUICK, "group_id": self.name_group(), **options}
        return kohort.Consumer(bootstrap_servers=self.bootstrap_servers, **given)


def at(topic: Topic, number: int = 0) -> TopicPartition:
    return TopicPartition(topic, Partition(number))


def read(consumer: Consumer, count: int, deadline_s: float = 20.0) -> list[ConsumerRecord]:
    """Read at least `count` records, sorted by partition and offset."""
    records: list[ConsumerRecord] = []

    def has_all() -> bool:
        records.extend(flatten(consumer.poll(timeout_ms=50)))
        return len(records) >= count

    wait_until(has_all, deadline_s, f"{count} records")
    return sorted(records, key=lambda each: (each.topic, each.partition, each.offset))


def flatten(polled: dict[TopicPartition, list[ConsumerRecord]]) -> Iterable[ConsumerRecord]:
    return itertools.chain.from_iterable(polled.values())


def offsets(records: Iterable[ConsumerRecord]) -> list[int]:
    return [record.offset for record in records]


def poll_until(consumer: Consumer, condition: Callable[[], object], what: str = "") -> None:
    """Poll until the condition is true; no records are expected."""

    def is_so() -> bool:
        assert not consumer.poll(20)
        return bool(condition())

    wait_until(is_so, 20, what)
