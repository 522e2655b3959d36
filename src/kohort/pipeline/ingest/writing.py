"""What happens to one batch: shaped, written aside, looked at, published. Once, whatever happens.

Spark calls it from a thread of its own. Between two batches it may be closed; in the middle of one
it is not disturbed.
"""

import threading
import time
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  # as everybody who uses Spark calls it

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.ingest.shaping import Shape
from kohort.pipeline.ingest.table import BAD, DATA, Table
from kohort.types import value

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_NO_MARK: Final = "mapreduce.fileoutputcommitter.marksuccessfuljobs"


class Ended(Exception):
    """No more batches: the next one is left to the next run. Spark has to see it fail."""


class RowsMissing(PipelineError):
    """Rows were written, and are not there."""


@value
class Written:
    """What this run has done so far."""

    rows: int = 0
    bad: int = 0
    batches: int = 0
    last_batch: int = -1


class BatchWriter:
    """Given to `foreachBatch`."""

    def __init__(
        self,
        table: Table,
        shape: Shape,
        *,
        run: str,
        partition_by: tuple[str, ...],
        every_s: float,
    ) -> None:
        self._table = table
        self._shape = shape
        self._run = run
        self._partition_by = partition_by
        self._every_s = every_s
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._is_busy = False
        self._began_at = float("-inf")
        self.has_backlog = True
        """Whether there is more to read than one batch takes: then none waits."""
        self.written = Written()
        self.failure: Exception | None = None
        self.has_refused = False
        """Whether a batch came after it was closed, so that Spark's query has failed as it must."""

    def close(self) -> None:
        """Let the batch that runs come to its end, and none begin any more."""
        with self._lock:
            self._closing.set()

    @property
    def is_busy(self) -> bool:
        with self._lock:
            return self._is_busy

    def write(self, records: DataFrame, batch: int) -> None:
        self._begin()
        try:
            if not self._table.is_done(batch):
                self._write(records, batch)
        except Exception as error:
            self.failure = error
            raise
        finally:
            with self._lock:
                self._is_busy = False

    def _begin(self) -> None:
        if not self.has_backlog:
            self._closing.wait(self._began_at + self._every_s - time.monotonic())
        with self._lock:
            # To return without having written would be to lose the batch: Spark takes it for done.
            if self._closing.is_set():
                self.has_refused = True
                raise Ended("the ingest ends before this batch; the next run begins with it")
            self._is_busy = True
        self._began_at = time.monotonic()

    def _write(self, records: DataFrame, batch: int) -> None:
        shape = self._shape
        prepared = shape.prepare(records)
        if shape.can_be_bad:
            # It is read twice, and the brokers are to be asked once.
            prepared = prepared.persist()
        try:
            counted = Observation()
            watched = prepared.observe(
                counted,
                F.count_if(~shape.is_bad()).alias("rows"),
                F.count_if(shape.is_bad()).alias("bad"),
            )
            place = self._table.stage(self._run, batch, DATA)
            self._write_files(shape.take_good(watched), place, self._partition_by)
            rows, bad = counted.get["rows"], counted.get["bad"]
            staged = self._check(records, {DATA: place}, rows, shape.columns)
            if bad:
                place = self._table.stage(self._run, batch, BAD)
                rejected = shape.take_bad(prepared)
                self._write_files(rejected, place, ())
                staged |= self._check(records, {BAD: place}, bad, rejected.schema)
        finally:
            if shape.can_be_bad:
                prepared.unpersist()
        self._table.publish(self._run, batch, staged, rows=rows, bad=bad)
        self.written = Written(
            rows=self.written.rows + rows,
            bad=self.written.bad + bad,
            batches=self.written.batches + 1,
            last_batch=batch,
        )

    def _write_files(self, rows: DataFrame, place: str, partition_by: tuple[str, ...]) -> None:
        writer = rows.write.option(_NO_MARK, "false").partitionBy(*partition_by)
        writer.parquet(self._table.files.address(place))

    def _check(
        self, records: DataFrame, part: dict[str, str], rows: int, columns: "StructType"
    ) -> dict[str, str]:
        """What is to be published: nothing, where there are no rows.

        Workers that do not share a file system write without complaint, each to its own disk.
        """
        if not rows:
            return {}
        (place,) = part.values()
        address = self._table.files.address(place)
        found = records.sparkSession.read.schema(columns).parquet(address).count()
        if found != rows:
            raise RowsMissing(
                f"{rows} rows were written to {address} and {found} are there: the driver and all "
                "workers have to share the file system of the target"
            )
        return part
