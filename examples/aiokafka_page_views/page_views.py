"""Counts the views of each page once: the counts and the offsets are in one SQLite transaction.

Kafka's committed offset says where a restarted service continues. It may be behind the database,
after a crash or a lost commit. Views that are read again are skipped by the offset in the database.
"""

import asyncio
import json
import logging
import os
import sqlite3
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

LOG = logging.getLogger("page_views")

SCHEMA = """
    CREATE TABLE IF NOT EXISTS views (page TEXT PRIMARY KEY, count INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS offsets (
        topic TEXT, part INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, part)
    );
"""


class ViewStore:
    """The views of each page, and how far each partition is counted."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(SCHEMA)

    def add(self, partition: TopicPartition, records: Sequence[ConsumerRecord]) -> None:
        """Count the records of a partition that are not counted yet."""
        with self._database:
            # No other instance may change the offset between the read and the write.
            self._database.execute("BEGIN IMMEDIATE")
            start = self._next_offset(partition)
            pages = [(record.value.decode(),) for record in records if record.offset >= start]
            self._database.executemany(
                "INSERT INTO views VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1", pages
            )
            self._database.execute(
                "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)",
                (*partition, max(start, records[-1].offset + 1)),
            )

    def counts(self) -> dict[str, int]:
        return dict(self._database.execute("SELECT page, count FROM views"))

    def close(self) -> None:
        self._database.close()

    def _next_offset(self, partition: TopicPartition) -> int:
        found = self._database.execute(
            "SELECT next FROM offsets WHERE topic = ? AND part = ?", tuple(partition)
        ).fetchone()
        return found[0] if found else 0


async def count_views(consumer: AIOKafkaConsumer, store: ViewStore) -> None:
    """Count views until the task is cancelled."""
    async with consumer:
        while True:
            batches = await consumer.getmany(timeout_ms=1_000)
            for partition, records in batches.items():
                store.add(partition, records)
            if batches:
                await commit(consumer)


async def commit(consumer: AIOKafkaConsumer) -> None:
    try:
        await consumer.commit()
    except KafkaError as error:
        # The database is right. At worst, views are read again and skipped.
        LOG.warning("not committed: %r", error)


async def main() -> None:
    """The environment has the options of the consumer, as JSON, the topic and the database."""
    logging.basicConfig(level=logging.INFO)
    options = json.loads(os.environ["KAFKA_OPTIONS"])
    store = ViewStore(os.environ["DATABASE"])
    try:
        await count_views(make_consumer(os.environ["TOPIC"], **options), store)
    finally:
        store.close()


def make_consumer(topic: str, **options: object) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        topic, auto_offset_reset="earliest", enable_auto_commit=False, **options
    )


if __name__ == "__main__":
    asyncio.run(main())
