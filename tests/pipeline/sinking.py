"""Where the sink's tests write to, and how they read what was written: with Kohort's consumer."""

import itertools
import os
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

import kohort
from kohort.client.fetching.records import ConsumerRecord
from kohort.types import Partition, Topic
from tests.waiting import wait_until

_NUMBERS = itertools.count(1)

HEADERS = "array<struct<key:string,value:binary>>"


class Target:
    """A broker, Kohort's or Apache's, that the sink writes to."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        # It outlives its broker, and would complain of that until the tests have ended.
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def options(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **(given or {})}

    def create_topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        topic = f"sink-{os.getpid()}-{next(_NUMBERS)}"
        made = self._admin.create_topics([NewTopic(topic, partitions, config=dict(config or {}))])
        made[topic].result()
        return topic

    def read(self, topic: str) -> list[ConsumerRecord]:
        """All there is, in the order of partitions and offsets."""
        with kohort.Consumer(
            bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            places = [
                kohort.TopicPartition(Topic(topic), Partition(number))
                for number in sorted(consumer.partitions_for(topic))
            ]
            ends = consumer.end_offsets(places)
            consumer.assign(places)
            found: list[ConsumerRecord] = []

            def is_read() -> bool:
                for records in consumer.poll(timeout_ms=100).values():
                    found.extend(records)
                return all(consumer.position(place) >= ends[place] for place in places)

            wait_until(is_read, 60, f"all of {topic} is read")
        return sorted(found, key=lambda record: (record.partition, record.offset))


def contents(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]
