"""A node with topics, and what tests of an ingest do with it."""

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kohort.pipeline.ingest.wish import Wish
from tests.waiting import wait_until

_NUMBERS = itertools.count(1)

Value = bytes | None


class Broker:
    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def name_anew(self, word: str) -> str:
        return f"{word}-{next(_NUMBERS)}"

    def make_topic(self, partitions: int = 1) -> str:
        topic = self.name_anew("topic")
        self._admin.create_topics([NewTopic(topic, partitions)])[topic].result()
        return topic

    def write(self, topic: str, values: Iterable[Value], partition: int = 0, **more: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for value in values:
            producer.produce(topic, value=value, partition=partition, **more)
            producer.poll(0)
        assert producer.flush(60) == 0, "they were not acknowledged"

    def delete_before(self, topic: str, offset: int) -> None:
        for deleted in self._admin.delete_records([TopicPartition(topic, 0, offset)]).values():
            deleted.result()

    def committed(self, group: str) -> dict[int, int]:
        asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result().topic_partitions
        return {each.partition: each.offset for each in found}

    def state_of(self, group: str) -> str:
        described: str = self._admin.describe_consumer_groups([group])[group].result().state.name
        return described

    def await_state(self, group: str, state: str) -> None:
        wait_until(lambda: self.state_of(group) == state, 30, f"{group} is {state}")


def wish_for(broker: Broker, topic: str, target: Path | str, **more: Any) -> Wish:
    given: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "topics": (topic,),
        "group_id": f"of-{topic}",
        "target": str(target),
        "every_s": 0.0,
    }
    return Wish(**given | more)


def numbered(numbers: Iterable[int]) -> list[Value]:
    return [json.dumps({"id": number}).encode() for number in numbers]


def commits_in(target: Path) -> list[int]:
    return sorted(int(path.stem) for path in (target / "_commits").glob("[0-9]*.json"))


def places_in(target: Path) -> list[tuple[int, int]]:
    """Partition and offset of every row of a raw table, as anybody finds them who reads Parquet."""
    table = pq.read_table(target / "data", columns=["partition", "offset"])
    return sorted(
        zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    )


def all_places(ends: Sequence[int]) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, end in enumerate(ends) for offset in range(end)]
