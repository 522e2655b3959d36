"""Reads one topic to its end with one client library, in a separate process, and prints the cost.

`python -m bench.kit.topic_reader LIBRARY PORT TOPIC RECORDS CORE`. Every library reads the key, the
value and the offset of each record.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

PARTITIONS = 2
POLL_MS = 1_000
MANY = 500
"""Records of one poll: the default of two of the three, and what suits the third one best."""


class Tally:
    """Counts records, and the time from the first request to the last record."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._seen = 0
        self._sum = 0
        self._began = time.perf_counter()
        self._cpu_began = time.process_time()

    def take(self, records: Iterable[Any]) -> bool:
        """Count these records; return whether all have arrived."""
        total = 0
        seen = 0
        for record in records:
            total += len(record.key) + len(record.value) + record.offset
            seen += 1
        self._sum += total
        self._seen += seen
        return self._seen >= self._count

    def report(self) -> dict[str, float]:
        return {
            "records": self._seen,
            "sum": self._sum,
            "wall_s": time.perf_counter() - self._began,
            "cpu_s": time.process_time() - self._cpu_began,
        }


def read_with_kohort(servers: str, topic: str, count: int) -> Tally:
    import kohort  # noqa: PLC0415  # each process imports only its own library
    from kohort.types import Topic  # noqa: PLC0415

    with kohort.Consumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", max_poll_records=MANY
    ) as consumer:
        partitions = consumer.partitions_for_topic(topic)
        names = [kohort.TopicPartition(Topic(topic), each) for each in partitions]
        consumer.assign(names)
        tally = Tally(count)
        while True:
            for records in consumer.poll(timeout_ms=POLL_MS).values():
                if tally.take(records):
                    return tally


def read_with_kafka_python(servers: str, topic: str, count: int) -> Tally:
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415

    consumer = KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", max_poll_records=MANY
    )
    consumer.assign([TopicPartition(topic, each) for each in range(PARTITIONS)])
    tally = Tally(count)
    while True:
        for records in consumer.poll(timeout_ms=POLL_MS).values():
            if tally.take(records):
                consumer.close()
                return tally


def read_with_aiokafka(servers: str, topic: str, count: int) -> Tally:
    return asyncio.run(_read_with_aiokafka(servers, topic, count))


async def _read_with_aiokafka(servers: str, topic: str, count: int) -> Tally:
    from aiokafka import AIOKafkaConsumer, TopicPartition  # noqa: PLC0415

    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, each) for each in range(PARTITIONS)])
        tally = Tally(count)
        while True:
            found = await consumer.getmany(timeout_ms=POLL_MS, max_records=MANY)
            for records in found.values():
                if tally.take(records):
                    return tally
    finally:
        await consumer.stop()


READERS: dict[str, Callable[[str, str, int], Tally]] = {
    "kohort": read_with_kohort,
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
}


def main(library: str, port: str, topic: str, count: str, core: str) -> None:
    if core != "-":
        os.sched_setaffinity(0, {int(core)})
    tally = READERS[library](f"127.0.0.1:{port}", topic, int(count))
    sys.stdout.write(json.dumps(tally.report()) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
