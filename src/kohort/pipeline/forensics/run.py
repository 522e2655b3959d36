"""One run of the forensics: update bronze, rebuild every table, and call back for the report.

A copied log is read in one pass. From a cluster, bronze is a stream with its own consumer group,
which is left out of the tables; tables are built once, or repeatedly while the stream continues.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kohort.pipeline.forensics import bronze, tables
from kohort.pipeline.forensics.live_bronze import LiveBronze
from kohort.pipeline.forensics.options import ForensicsOptions, check
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.table_builder import ProgressCallback, TableBuilder
from kohort.types import value

_POLL_S: Final = 0.25
_STOP_TIMEOUT_S: Final = 60.0

_END_COLUMNS: Final = (
    "timestamp_millis(at_ms) AS at",
    "topic",
    "int(partition) AS partition",
    "log_start",
    "log_end",
)


@value
class ForensicsSummary:
    records: int
    """The records in bronze."""
    table_summary: Mapping[str, Any]
    """The summary of the tables, as in `_complete.json`."""
    incomplete: tuple[str, ...]
    """Incomplete ends of copied logs, which were left out."""
    seconds: float


def run(
    spark: SparkSession,
    options: ForensicsOptions,
    *,
    stop: threading.Event | None = None,
    on_progress: ProgressCallback = lambda *_: None,
    on_built: Callable[[], None] = lambda: None,
) -> ForensicsSummary:
    """`on_built` is called whenever all tables are complete."""
    check(options)
    return _ForensicsRun(spark, options, stop or threading.Event(), on_progress, on_built).run()


class _ForensicsRun:
    def __init__(
        self,
        spark: SparkSession,
        options: ForensicsOptions,
        stop: threading.Event,
        on_progress: ProgressCallback,
        on_built: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._options = options
        self._stop = stop
        self._on_progress = on_progress
        self._on_built = on_built
        self._store = Store(spark, options.target)
        self._started_at = time.monotonic()
        self._incomplete: tuple[str, ...] = ()
        self._table_summary: dict[str, Any] = {}
        self._rows = 0

    def run(self) -> ForensicsSummary:
        if self._options.log is not None:
            self._copy_log(self._options.log)
            self._build()
        elif self._options.is_continuous:
            self._build_repeatedly(self._start_stream(self._options.every_s))
        else:
            self._wait_for(self._start_stream(None))
            self._build()
        return ForensicsSummary(
            records=self._store.read(tables.RECORDS).count(),
            table_summary=self._table_summary,
            incomplete=self._incomplete,
            seconds=time.monotonic() - self._started_at,
        )

    def _copy_log(self, log: str) -> None:
        self._on_progress("records of the log", 0, 0)
        survey = bronze.ingest(self._spark, log, self._store.address(tables.RECORDS))
        self._incomplete = tuple(f"{each.path}: {each.reason}" for each in survey.incomplete)
        if self._options.ends is not None:
            rows = self._spark.read.json(self._options.ends).selectExpr(*_END_COLUMNS)
            self._store.write(tables.ENDS, rows)

    def _start_stream(self, every_s: float | None) -> StreamingQuery:
        live = LiveBronze(self._spark, self._store, self._options)
        return live.start(every_s=every_s, on_batch=self._count)

    def _count(self, rows: int) -> None:
        self._rows += rows
        self._on_progress(f"{self._rows} records copied", 0, 0)

    def _wait_for(self, query: StreamingQuery) -> None:
        try:
            while query.isActive and not self._stop.is_set():
                self._stop.wait(_POLL_S)
        finally:
            self._stop_query(query)

    def _build_repeatedly(self, query: StreamingQuery) -> None:
        built, not_before = -1, 0.0
        try:
            while query.isActive and not self._stop.wait(_POLL_S):
                if self._rows != built and time.monotonic() >= not_before:
                    built = self._rows
                    self._build()
                    not_before = time.monotonic() + self._options.rebuild_s
        finally:
            self._stop_query(query)
        if self._rows != built:
            self._build()

    def _stop_query(self, query: StreamingQuery) -> None:
        """Stop between two batches if that is soon; an interrupted batch is repeated later."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        query.stop()
        failure = query.exception()
        if failure is not None:
            raise failure

    def _build(self) -> None:
        builder = TableBuilder(
            self._store,
            since=self._options.since,
            groups=self._options.groups,
            excluded=() if self._options.log is not None else (self._options.group_id,),
            on_progress=self._on_progress,
        )
        self._table_summary = builder.build()
        self._on_built()
