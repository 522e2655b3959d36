"""A broker for the sink's tests, read with Kohort's consumer."""

import itertools
import os
from collections.abc import Mapping

from confluent_kafka.admin import NewTopic

import kohort
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import Partition, Topic
from tests.pipeline.admin_client import admin_client
from tests.wait import wait_until

_NUMBERS = itertools.count(1)

HEADERS = "array<struct<key:string,value:binary>>"


class Target:
    """The broker that the sink writes to: Kohort or Apache Kafka."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def options(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **(given or {})}

    def create_topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        topic = f"sink-{os.getpid()}-{next(_NUMBERS)}"
        new = NewTopic(topic, partitions, config=dict(config or {}))
        with admin_client(self.bootstrap_servers) as admin:
            admin.create_topics([new])[topic].result()
        return topic

    def read(self, topic: str) -> list[ConsumerRecord]:
        """All records, ordered by partition and offset."""
        with kohort.Consumer(
            bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            partitions = [
                kohort.TopicPartition(Topic(topic), Partition(number))
                for number in sorted(consumer.partitions_for_topic(topic))
            ]
            ends = consumer.end_offsets(partitions)
            consumer.assign(partitions)
            found: list[ConsumerRecord] = []

            def is_read() -> bool:
                for records in consumer.poll(timeout_ms=100).values():
                    found.extend(records)
                return all(
                    consumer.position(partition) >= ends[partition] for partition in partitions
                )

            wait_until(is_read, 60, f"all of {topic} is read")
        return sorted(found, key=lambda record: (record.partition, record.offset))


def contents(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]
