"""The stream reader: how Spark asks for batches, and when the group hears of them.

Spark asks `latestOffset(start)` only once its commit log has the batch that ends at `start`. That
is the moment at which the group is told, so that it never leads the checkpoint; after that, a
rebalance may take partitions away. All of this happens in one process beside Spark's driver;
copies of the reader, without any of its state, read ranges in Spark's workers.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kohort.pipeline.source.driving import Driver
from kohort.pipeline.source.holding import hold
from kohort.pipeline.source.options import SourceOptions
from kohort.pipeline.source.ranges import split
from kohort.pipeline.source.reading import read_task, tasks_of
from kohort.pipeline.source.stream_offset import NOWHERE, StreamOffset


class KohortStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions) -> None:
        """Called in several processes: nothing is joined here."""
        self._options = options
        self._driver: Driver | None = None
        self._is_available_now = False
        self._is_working = False
        self._is_ending = False
        self._former_handler: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """What goes to the workers: no membership."""
        return {"_options": self._options}

    # What Spark asks beside its driver

    def initialOffset(self) -> dict[str, Any]:
        """Nowhere: where a partition begins is noted in the first offset that has it."""
        return NOWHERE.write()

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max = self._options.rows_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        before = StreamOffset.read(start)
        with self._at_work() as driver:
            after = driver.advance(before, rows_max)
        # What is equal must be equal to the letter, or Spark takes it for news.
        return start if after is before else after.write()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """From the two offsets alone: after a crash Spark asks for an unfinished batch again."""
        with self._at_work() as driver:
            driver.join()
        ranges = StreamOffset.read(end).ranges_since(StreamOffset.read(start))
        return tasks_of(split(ranges, self._options.parts_min))

    def commit(self, end: dict[str, Any]) -> None:
        with self._at_work() as driver:
            driver.commit(StreamOffset.read(end))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if self._driver is None:
            return None
        with self._at_work() as driver:
            return driver.report()

    def stop(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()
            if self._former_handler is not None:
                signal.signal(signal.SIGTERM, self._former_handler)

    # What a worker does

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._options)

    # Beginning and ending

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[Driver]:
        if self._driver is None:
            self._listen_for_the_end()
            holding = hold(self._options, lambda: self._is_ending)
            self._driver = Driver(self._options, holding, is_available_now=self._is_available_now)
        self._is_working = True
        try:
            yield self._driver
        finally:
            self._is_working = False
            if self._is_ending:
                raise SystemExit(0)

    def _listen_for_the_end(self) -> None:
        """Spark ends this process with SIGTERM when a query stops: time to leave the group."""
        if threading.current_thread() is threading.main_thread():
            self._former_handler = signal.signal(signal.SIGTERM, self._on_terminate)

    def _on_terminate(self, _number: int, _frame: object) -> None:
        """In the middle of something, that is finished first. Spark's runner then calls `stop`.

        Spark may say so twice, milliseconds apart: the second time must not disturb the leaving.
        """
        if self._is_ending:
            return
        self._is_ending = True
        if not self._is_working:
            raise SystemExit(0)
