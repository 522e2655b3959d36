"""Run an ingest: start a streaming query, report its progress, stop it between two batches.

A stop takes these steps: the writer accepts no new batch; the running batch finishes and enters
Spark's commit log; Spark calls the source once more, which commits to the group; the query stops,
and its member leaves the group.
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kohort.pipeline import register
from kohort.pipeline.ingest.batch_writer import BatchWriter
from kohort.pipeline.ingest.hadoop_fs import HadoopFiles
from kohort.pipeline.ingest.options import IngestOptions, check_options, source_options
from kohort.pipeline.ingest.preflight import has_group_committed
from kohort.pipeline.ingest.run_status import (
    IngestProgress,
    IngestSummary,
    StoppedImmediately,
    StopRequest,
)
from kohort.pipeline.ingest.table import BAD, CHECKPOINT, DATA, IngestTable, TableMetadata
from kohort.pipeline.ingest.transform import RowTransform, choose_transform
from kohort.pipeline.source.options import offsets_from_json
from kohort.pipeline.source.planner import StreamOffset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_S: Final = 0.25
_COMMIT_S: Final = 20.0
"""How long a stop waits for the last commit to the group; otherwise the next run commits it."""
_LEAVE_S: Final = 10.0

_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # All Parquet readers understand this timestamp; the default INT96 is Spark's own.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # How often an idle query polls the source and reports progress.
    "spark.sql.streaming.pollingDelay": "500ms",
    "spark.sql.streaming.noDataProgressEventInterval": "0",
}

OnProgress = Callable[[IngestProgress], None]


def run(
    spark: "SparkSession",
    options: IngestOptions,
    *,
    stop: StopRequest | None = None,
    on_progress: OnProgress | None = None,
) -> IngestSummary:
    """Ingest all records that are there now; if continuous, run until `stop` is set."""
    check_options(options)
    transform = choose_transform(options)
    session = _clone(spark)
    for name, text in _SETTINGS.items():
        session.conf.set(name, text)
    table = IngestTable(HadoopFiles(session, options.target))
    table.open(
        TableMetadata(
            topics=options.topics,
            group_id=options.group_id,
            columns=transform.columns,
            partition_by=options.partition_by,
            is_parsed=transform.can_be_bad,
        )
    )
    ingest = _IngestRun(session, options, table, transform)
    return ingest.run(stop or StopRequest(), on_progress or (lambda _: None))


def _clone(spark: "SparkSession") -> "SparkSession":
    """A session with its own settings that knows the same formats; newSession() would lose them."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # only type names above

    register(spark)
    parent: Any = spark
    return SparkSession(spark.sparkContext, parent._jsparkSession.cloneSession())  # noqa: SLF001


class _IngestRun:
    def __init__(
        self,
        spark: "SparkSession",
        options: IngestOptions,
        table: IngestTable,
        transform: RowTransform,
    ) -> None:
        self._spark = spark
        self._options = options
        self._table = table
        self._id = uuid.uuid4().hex
        self._writer = BatchWriter(
            table,
            transform,
            run=self._id,
            partition_by=options.partition_by,
            every_s=options.every_s if options.is_continuous else 0.0,
        )
        self._started_at = time.monotonic()
        self._status = _QueryStatus()

    def run(self, stop: StopRequest, on_progress: OnProgress) -> IngestSummary:
        self._table.claim(self._id)
        before = _find_members(self._spark)
        query = self._start()
        try:
            self._follow(query, stop, on_progress)
        finally:
            # Interrupts a running batch; one runs only after an error or an immediate stop.
            query.stop()
        if stop.immediately.is_set():
            raise StoppedImmediately
        self._update(query)
        failure = self._writer.failure or query.exception()
        if failure is not None and not self._writer.has_refused:
            raise failure
        has_left = _wait_for_exit(self._spark, before)
        return self._summarize(has_left=has_left, is_interrupted=stop.after_batch.is_set())

    def _start(self) -> "StreamingQuery":
        reader = self._spark.readStream.format("kohort").options(**source_options(self._options))
        writer = reader.load().writeStream.foreachBatch(self._writer.write)
        writer = writer.option("checkpointLocation", self._table.files.address(CHECKPOINT))
        if self._options.is_continuous:
            writer = writer.trigger(processingTime="0 seconds")
        else:
            writer = writer.trigger(availableNow=True)
        return writer.start()

    def _follow(self, query: "StreamingQuery", stop: StopRequest, on_progress: OnProgress) -> None:
        """Return when the query has ended, or may be stopped without losing a commit."""
        give_up_at = float("inf")
        while query.isActive:
            self._update(query)
            on_progress(self._progress(is_stopping=stop.after_batch.is_set()))
            if stop.immediately.is_set():
                return
            if not stop.after_batch.wait(_POLL_S):
                continue
            self._writer.close()
            if give_up_at == float("inf") or self._writer.is_busy:
                give_up_at = time.monotonic() + _COMMIT_S
            elif self._is_last_batch_committed() or time.monotonic() > give_up_at:
                return
            stop.immediately.wait(_POLL_S)

    def _is_last_batch_committed(self) -> bool:
        """Whether the group has the last batch. Progress from before that batch does not count."""
        last = self._writer.totals.last_batch
        return last < 0 or (self._status.batch > last and self._status.is_committed)

    def _update(self, query: "StreamingQuery") -> None:
        progress = query.lastProgress
        if progress is not None:
            self._status.read(json.loads(progress.json))
            self._writer.has_backlog = self._status.lag is None or self._status.lag > 0

    def _progress(self, *, is_stopping: bool) -> IngestProgress:
        totals, status = self._writer.totals, self._status
        return IngestProgress(
            rows=totals.rows,
            bad=totals.bad,
            batches=totals.batches,
            seconds=time.monotonic() - self._started_at,
            rows_per_second=status.rows_per_second,
            lag=status.lag,
            group_state=status.group_state,
            generation=status.generation,
            is_stopping=is_stopping,
        )

    def _summarize(self, *, has_left: bool, is_interrupted: bool) -> IngestSummary:
        totals, commit = self._writer.totals, self._table.find_last_commit()
        ends = StreamOffset.read(json.loads(commit.end)).positions if commit else {}
        return IngestSummary(
            rows=totals.rows,
            bad=totals.bad,
            batches=totals.batches,
            seconds=time.monotonic() - self._started_at,
            lag=self._status.lag,
            is_interrupted=is_interrupted,
            is_group_committed=has_group_committed(check_options(self._options), ends),
            has_left=has_left,
            rows_total=commit.rows_total if commit else 0,
            bad_total=commit.bad_total if commit else 0,
            target=self._table.files.root,
            data=self._table.files.address(DATA),
            bad_data=self._table.files.address(BAD),
            skipped=tuple(sorted(self._status.skipped)),
        )


class _QueryStatus:
    """The source's part of the query's progress."""

    def __init__(self) -> None:
        self.batch = -1
        self.lag: int | None = None
        self.group_state = "starting"
        self.generation: int | None = None
        self.rows_per_second = 0.0
        self.is_committed = False
        self.skipped: set[str] = set()

    def read(self, progress: dict[str, Any]) -> None:
        source = progress["sources"][0]
        ends = source.get("latestOffset") or {}
        group = ends.get("$group", {})
        positions = StreamOffset.read(source.get("endOffset") or {}).positions
        committed = offsets_from_json(group.get("committed", {}))
        self.batch = progress["batchId"]
        self.is_committed = all(committed.get(each) == at for each, at in positions.items())
        if "$lag" in ends:
            self.lag = sum(offsets_from_json(ends["$lag"]).values())
        self.group_state = group.get("state", self.group_state)
        self.generation = group.get("generation", self.generation)
        if progress["numInputRows"]:
            self.rows_per_second = progress["processedRowsPerSecond"]
        for name, (first, stop) in ends.get("$read_by_others", {}).items():
            self.skipped.add(f"{name} {first} to {stop - 1}")


# The member's process is a child of the driver's JVM


def _find_members(spark: "SparkSession") -> set[int]:
    # Spark has no API for its own child processes.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    children = jvm.java.lang.ProcessHandle.current().children().toArray()
    return {
        int(child.pid())
        for child in children
        if "python_streaming_source_runner" in str(child.info().commandLine().orElse(""))
    }


def _wait_for_exit(spark: "SparkSession", before: set[int]) -> bool:
    end = time.monotonic() + _LEAVE_S
    while _find_members(spark) - before:
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S / 5)
    return True
