"""Bronze from a cluster that runs: both topics as a stream, and where the logs of the others end.

Each batch is written under its number, so that one that runs again replaces what it left. The topic
itself is compacted: what is copied while it streams is the only history that stays.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kohort.pipeline
from kohort.client.consumer import Consumer
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import NoSuchTopic
from kohort.pipeline.forensics.decoding.files import EVENTS, OFFSETS
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.tables import ENDS, RECORDS
from kohort.pipeline.source.options import SourceOptions, consumer_config, read_source_options
from kohort.types import value

_CHECKPOINT: Final = "_checkpoint"

_ASKED_AT_ONCE: Final = 2_000
"""Partitions whose ends are looked at with one question."""


@value
class LiveWish:
    bootstrap_servers: str
    group_id: str
    rows_max: int
    kafka: dict[str, str]

    def options(self, topics: str) -> dict[str, str]:
        """Of the source: from the beginning, and only what was not aborted."""
        return {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": topics,
            "group.id": self.group_id,
            "auto.offset.reset": "earliest",
            "maxOffsetsPerTrigger": str(self.rows_max),
            # What compaction takes before it is read is no error here: it is what the topic is for.
            "failOnDataLoss": "false",
            "kafka.isolation.level": "read_committed",
            **{f"kafka.{name}": text for name, text in self.kafka.items()},
        }


class LiveBronze:
    def __init__(self, spark: SparkSession, store: Store, wish: LiveWish) -> None:
        kohort.pipeline.register(spark)
        self._spark = spark
        self._store = store
        self._wish = wish
        self._options = read_source_options(wish.options(OFFSETS), is_streaming=True)

    def start(self, *, every_s: float | None, then: Callable[[int], None]) -> StreamingQuery:
        """Until all is read that is there now, or for ever; `then` hears of each batch's rows."""

        def keep(batch: DataFrame, number: int) -> None:
            batch.persist()
            try:
                self._keep(batch, number)
                then(batch.count())
            finally:
                batch.unpersist()

        stream = self._spark.readStream.format("kohort")
        writer = (
            stream.options(**self._wish.options(self._find_topics()))
            .load()
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", self._store.files.address(_CHECKPOINT))
        )
        if every_s is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(every_s * 1000)} milliseconds").start()

    def _keep(self, batch: DataFrame, number: int) -> None:
        place = f"batch-{number:09d}"
        records = conform(batch, RECORDS)
        records.write.mode("overwrite").parquet(f"{self._store.address(RECORDS)}/{place}")
        ends = self._look_at_ends()
        ends.write.mode("overwrite").parquet(f"{self._store.address(ENDS)}/{place}")

    def _find_topics(self) -> str:
        with _consumer(self._options) as consumer:
            topics = consumer.topics()
        if OFFSETS not in topics:
            raise NoSuchTopic(
                f"there is no {OFFSETS} at {self._wish.bootstrap_servers}: no group has ever "
                "committed there, or this user may not read it"
            )
        return f"{OFFSETS},{EVENTS}" if EVENTS in topics else OFFSETS

    def _look_at_ends(self) -> DataFrame:
        """Of everything that groups may read."""
        with _consumer(self._options) as consumer:
            partitions = [
                TopicPartition(topic, number)
                for topic in sorted(consumer.topics() - {OFFSETS, EVENTS})
                for number in sorted(consumer.partitions_for(topic))
            ]
            rows: list[tuple[datetime, str, int, int, int]] = []
            for at in range(0, len(partitions), _ASKED_AT_ONCE):
                some = partitions[at : at + _ASKED_AT_ONCE]
                starts, ends = consumer.beginning_offsets(some), consumer.end_offsets(some)
                now = datetime.now(UTC)
                rows += [
                    (now, each.topic, each.partition, starts[each], ends[each])
                    for each in some
                    if each in starts and each in ends
                ]
        return self._spark.createDataFrame(rows, ENDS.ddl)


def _consumer(options: SourceOptions) -> Consumer:
    return Consumer({**consumer_config(options), "exclude.internal.topics": False})
