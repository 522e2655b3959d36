"""Write one micro-batch: transform, write to staging, count, publish. Each batch exactly once.

Spark calls it from its own thread. `close` takes effect between two batches.
"""

import threading
import time
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.ingest.table import BAD, DATA, IngestTable
from kohort.pipeline.ingest.transform import RowTransform
from kohort.types import value

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SUCCESS_MARK: Final = "mapreduce.fileoutputcommitter.marksuccessfuljobs"


class IngestStopped(Exception):
    """Raised instead of a batch after `close`. Spark must see the batch fail to run it again."""


class RowsMissing(PipelineError):
    """The driver finds fewer rows than the workers have written."""


@value
class RunTotals:
    """What this run has written so far."""

    rows: int = 0
    bad: int = 0
    batches: int = 0
    last_batch: int = -1


class BatchWriter:
    """The function for `foreachBatch`, with its state."""

    def __init__(
        self,
        table: IngestTable,
        transform: RowTransform,
        *,
        run: str,
        partition_by: tuple[str, ...],
        every_s: float,
    ) -> None:
        self._table = table
        self._transform = transform
        self._run = run
        self._partition_by = partition_by
        self._every_s = every_s
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._is_busy = False
        self._started_at = float("-inf")
        self.has_backlog = True
        """Whether more is ready than one batch reads: then the next batch starts at once."""
        self.totals = RunTotals()
        self.failure: Exception | None = None
        self.has_refused = False
        """Whether a batch came after `close`, so that the query has failed as intended."""

    def close(self) -> None:
        """Finish the running batch and start no other."""
        with self._lock:
            self._closing.set()

    @property
    def is_busy(self) -> bool:
        with self._lock:
            return self._is_busy

    def write(self, records: DataFrame, batch: int) -> None:
        self._begin()
        try:
            if not self._table.is_committed(batch):
                self._write(records, batch)
        except Exception as error:
            self.failure = error
            raise
        finally:
            with self._lock:
                self._is_busy = False

    def _begin(self) -> None:
        if not self.has_backlog:
            self._closing.wait(self._started_at + self._every_s - time.monotonic())
        with self._lock:
            # If it returned without writing, Spark would commit the batch and lose its records.
            if self._closing.is_set():
                self.has_refused = True
                raise IngestStopped("the ingest stops before this batch; the next run reads it")
            self._is_busy = True
        self._started_at = time.monotonic()

    def _write(self, records: DataFrame, batch: int) -> None:
        transform = self._transform
        prepared = transform.prepare(records)
        if transform.can_be_bad:
            # It is used twice; the brokers are read once.
            prepared = prepared.persist()
        try:
            counted = Observation()
            observed = prepared.observe(
                counted,
                F.count_if(~transform.is_bad()).alias("rows"),
                F.count_if(transform.is_bad()).alias("bad"),
            )
            directory = self._table.stage(self._run, batch, DATA)
            self._write_files(transform.select_good(observed), directory, self._partition_by)
            rows, bad = counted.get["rows"], counted.get["bad"]
            staged = self._check(records, {DATA: directory}, rows, transform.columns)
            if bad:
                directory = self._table.stage(self._run, batch, BAD)
                rejected = transform.select_bad(prepared)
                self._write_files(rejected, directory, ())
                staged |= self._check(records, {BAD: directory}, bad, rejected.schema)
        finally:
            if transform.can_be_bad:
                prepared.unpersist()
        self._table.publish(self._run, batch, staged, rows=rows, bad=bad)
        self.totals = RunTotals(
            rows=self.totals.rows + rows,
            bad=self.totals.bad + bad,
            batches=self.totals.batches + 1,
            last_batch=batch,
        )

    def _write_files(self, rows: DataFrame, directory: str, partition_by: tuple[str, ...]) -> None:
        writer = rows.write.option(_SUCCESS_MARK, "false").partitionBy(*partition_by)
        writer.parquet(self._table.files.address(directory))

    def _check(
        self, records: DataFrame, part: dict[str, str], rows: int, columns: "StructType"
    ) -> dict[str, str]:
        """Count the written rows; returns the part to publish, or nothing if it has no rows.

        Workers that do not share a file system write to their own disks without an error.
        """
        if not rows:
            return {}
        (directory,) = part.values()
        address = self._table.files.address(directory)
        found = records.sparkSession.read.schema(columns).parquet(address).count()
        if found != rows:
            raise RowsMissing(
                f"{rows} rows were written to {address}, but {found} are there: the driver and all "
                "workers must share the file system of the target"
            )
        return part
