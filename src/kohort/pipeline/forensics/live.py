"""Bronze from a cluster that runs: both topics as a stream, and where the logs of the others end.

Each batch is written under its number, so that one that runs again replaces what it left. The topic
itself is compacted: what is copied while it streams is the only history that stays.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kohort.pipeline
from kohort.pipeline.forensics.asking import find_topics, look_at_ends, options_for
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.tables import ENDS, RECORDS
from kohort.pipeline.forensics.wish import ForensicsWish

_CHECKPOINT: Final = "_checkpoint"


class LiveBronze:
    def __init__(self, spark: SparkSession, store: Store, wish: ForensicsWish) -> None:
        kohort.pipeline.register(spark)
        self._spark = spark
        self._store = store
        self._wish = wish

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
            stream.options(**options_for(self._wish, find_topics(self._wish)))
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
        ends = self._spark.createDataFrame(look_at_ends(self._wish), ENDS.ddl)
        ends.write.mode("overwrite").parquet(f"{self._store.address(ENDS)}/{place}")
