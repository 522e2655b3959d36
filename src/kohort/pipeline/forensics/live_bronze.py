"""Stream both topics of a running cluster into bronze, with the end offsets of all other topics.

Each batch is written under its number, so that a repeated batch replaces its first attempt. The
topic itself is compacted, so the copied records are the only complete history.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kohort.pipeline
from kohort.pipeline.forensics.cluster_probe import find_topics, read_end_offsets, source_options
from kohort.pipeline.forensics.options import ForensicsOptions
from kohort.pipeline.forensics.store import Store, conform
from kohort.pipeline.forensics.tables import ENDS, RECORDS

_CHECKPOINT: Final = "_checkpoint"


class LiveBronze:
    def __init__(self, spark: SparkSession, store: Store, options: ForensicsOptions) -> None:
        kohort.pipeline.register(spark)
        self._spark = spark
        self._store = store
        self._options = options

    def start(self, *, every_s: float | None, on_batch: Callable[[int], None]) -> StreamingQuery:
        """Read the present records if `every_s` is None, else stream.

        `on_batch` is called with the number of rows of each batch.
        """

        def write(batch: DataFrame, number: int) -> None:
            batch.persist()
            try:
                self._write(batch, number)
                on_batch(batch.count())
            finally:
                batch.unpersist()

        stream = self._spark.readStream.format("kohort")
        writer = (
            stream.options(**source_options(self._options, find_topics(self._options)))
            .load()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", self._store.files.address(_CHECKPOINT))
        )
        if every_s is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(every_s * 1000)} milliseconds").start()

    def _write(self, batch: DataFrame, number: int) -> None:
        name = f"batch-{number:09d}"
        records = conform(batch, RECORDS)
        records.write.mode("overwrite").parquet(f"{self._store.address(RECORDS)}/{name}")
        ends = self._spark.createDataFrame(read_end_offsets(self._options), ENDS.ddl)
        ends.write.mode("overwrite").parquet(f"{self._store.address(ENDS)}/{name}")
