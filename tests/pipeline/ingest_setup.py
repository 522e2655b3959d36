"""A broker for the tests of the ingest, and helpers that read its tables."""

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from kohort.pipeline.ingest.options import IngestOptions
from tests.pipeline.admin_client import admin_client
from tests.wait import wait_until

_NUMBERS = itertools.count(1)

Value = bytes | None


class IngestBroker:
    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def unique_name(self, word: str) -> str:
        return f"{word}-{next(_NUMBERS)}"

    def create_topic(self, partitions: int = 1) -> str:
        topic = self.unique_name("topic")
        with admin_client(self.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(topic, partitions)])[topic].result()
        return topic

    def write(self, topic: str, values: Iterable[Value], partition: int = 0, **more: Any) -> None:
        with Producer({"bootstrap.servers": self.bootstrap_servers}) as producer:
            for value in values:
                producer.produce(topic, value=value, partition=partition, **more)
                producer.poll(0)
            assert producer.flush(60) == 0, "records were not acknowledged"

    def delete_before(self, topic: str, offset: int) -> None:
        with admin_client(self.bootstrap_servers) as admin:
            for deleted in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
                deleted.result()

    def committed(self, group: str) -> dict[int, int]:
        with admin_client(self.bootstrap_servers) as admin:
            listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            found = listed[group].result().topic_partitions
        return {each.partition: each.offset for each in found}

    def state_of(self, group: str) -> str:
        with admin_client(self.bootstrap_servers) as admin:
            state: str = admin.describe_consumer_groups([group])[group].result().state.name
        return state

    def wait_for_state(self, group: str, state: str) -> None:
        wait_until(lambda: self.state_of(group) == state, 30, f"{group} is {state}")


def options_for(broker: IngestBroker, topic: str, target: Path | str, **more: Any) -> IngestOptions:
    given: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "topics": (topic,),
        "group_id": f"of-{topic}",
        "target": str(target),
        "every_s": 0.0,
    }
    return IngestOptions(**given | more)


def numbered(numbers: Iterable[int]) -> list[Value]:
    return [json.dumps({"id": number}).encode() for number in numbers]


def commits_in(target: Path) -> list[int]:
    return sorted(int(path.stem) for path in (target / "_commits").glob("[0-9]*.json"))


def rows_in(target: Path) -> list[tuple[int, int]]:
    """Partition and offset of every row of a raw table, read as plain Parquet."""
    table = pq.read_table(target / "data", columns=["partition", "offset"])
    return sorted(
        zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    )


def rows_up_to(ends: Sequence[int]) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, end in enumerate(ends) for offset in range(end)]
