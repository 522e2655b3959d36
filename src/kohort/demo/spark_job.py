"""Runs Spark: the ingest of all orders into Parquet, and the forensics report. One JVM.

The ingest is a member of the group `warehouse`, and its thread owns the session. Other threads
write reports in the same session, one at a time.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kohort.demo.console_port import FORENSICS
from kohort.demo.demo_events import (
    OrdersIngested,
    ReportFinding,
    ReportStarted,
    ReportWritten,
    SparkStarted,
)
from kohort.demo.orders import SCHEMA
from kohort.demo.services import ORDERS, WAREHOUSE
from kohort.demo.threads import OnFailure, start_thread
from kohort.pipeline.forensics.options import ForensicsOptions
from kohort.pipeline.forensics.report import Report, write_report
from kohort.pipeline.forensics.run import run as run_forensics
from kohort.pipeline.ingest.error_text import explain
from kohort.pipeline.ingest.ingest_run import run as run_ingest
from kohort.pipeline.ingest.options import IngestOptions
from kohort.pipeline.ingest.run_status import IngestProgress, StopRequest
from kohort.pipeline.session import SessionOptions, open_session

_BATCH_INTERVAL_S: Final = 3.0
_PUBLISH_INTERVAL_S: Final = 15.0
_WAIT_S: Final = 0.1
_INGEST_TIMEOUT_S: Final = 120.0
"""Without progress. The first batch may take a minute on a busy machine."""

_SETTINGS: Final = {
    "spark.driver.memory": "1g",
    # With so little data, compiling and re-planning queries takes longer than running them.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Only the C1 compiler, whose code cache would be 48 MB by default, which is not enough.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=200m"
    ),
}

_JOB_TAG: Final = "kohort-demo-forensics"

_SEVERITY_ORDER: Final = {"critical": 0, "warning": 1}


class SparkNotStarted(Exception):
    """There is no Spark session: it failed to start, or has stopped."""


class SparkJob:
    def __init__(
        self,
        bootstrap_servers: str,
        directory: Path,
        *,
        publish: Callable[[SparkStarted | OrdersIngested | ReportStarted | ReportWritten], None],
        on_failure: OnFailure,
    ) -> None:
        self.table = directory / "orders"
        self.tables = directory / FORENSICS
        self.report = directory / "report.html"
        self._bootstrap_servers = bootstrap_servers
        self._publish = publish
        self._published_at = float("-inf")
        self._published = IngestProgress()
        self.progress = IngestProgress()
        """Progress of the ingest."""
        self._stop = StopRequest()
        self._spark: Any = None
        self._is_started = threading.Event()
        """Set when the session exists, and also when it failed to start."""
        self._is_ingested = threading.Event()
        self._closing = threading.Event()
        self._report_lock = threading.Lock()
        self._on_failure = on_failure
        self._thread = start_thread("Spark", self._run, on_failure)

    def finish_ingest(self, orders: int) -> None:
        """Wait until all orders are stored or there is no progress, then stop the ingest."""
        self._is_started.wait()
        seen, deadline = -1, 0.0
        while (stored := self.progress.rows + self.progress.bad) < orders:
            if stored > seen:
                seen, deadline = stored, time.monotonic() + _INGEST_TIMEOUT_S
            if self._is_ingested.wait(_WAIT_S) or time.monotonic() > deadline:
                break
        self._stop.after_batch.set()
        self._is_ingested.wait()

    def write_report(self, cancelled: threading.Event | None = None) -> None:
        """Build the tables and the report of everything that has happened so far.

        Fails soon after `cancelled` is set. The next report continues from there.
        """
        cancelled = cancelled or threading.Event()
        self._is_started.wait()
        with self._report_lock:
            if cancelled.is_set():
                return
            if self._spark is None:
                raise SparkNotStarted("there is no Spark session")
            self._spark.sparkContext.addJobTag(_JOB_TAG)
            try:
                self._publish(ReportStarted())
                self._publish(self._write_report(self._spark, cancelled))
            finally:
                self._spark.sparkContext.removeJobTag(_JOB_TAG)

    def cancel_jobs(self) -> None:
        """Cancel the running Spark jobs of a report."""
        if self._spark is not None:
            self._spark.sparkContext.cancelJobsWithTag(_JOB_TAG)

    def close(self) -> None:
        self._stop.after_batch.set()
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            options = SessionOptions(app_name="kohort demo", settings=_SETTINGS)
            with open_session(options) as spark:
                self._publish(SparkStarted())
                self._spark = spark
                self._is_started.set()
                self._ingest(spark)
                self._is_ingested.set()
                self._closing.wait()
                with self._report_lock:
                    self._spark = None
        finally:
            self._is_started.set()
            self._is_ingested.set()

    def _ingest(self, spark: Any) -> None:
        options = IngestOptions(
            bootstrap_servers=self._bootstrap_servers,
            topics=(ORDERS,),
            group_id=WAREHOUSE,
            target=str(self.table),
            schema=SCHEMA,
            partition_by=("date",),
            is_continuous=True,
            every_s=_BATCH_INTERVAL_S,
            kafka={"client.id": "spark"},
        )
        try:
            summary = run_ingest(spark, options, stop=self._stop, on_progress=self._on_progress)
        # The report does not need the ingest.
        except Exception as error:
            self._on_failure("ingest", explain(error))
        else:
            self.progress = IngestProgress(
                rows=summary.rows, bad=summary.bad, batches=summary.batches, lag=summary.lag
            )

    def _on_progress(self, progress: IngestProgress) -> None:
        self.progress = progress
        if progress.rows == self._published.rows:
            return
        now = time.monotonic()
        if now >= self._published_at + _PUBLISH_INTERVAL_S:
            self._published, self._published_at = progress, now
            self._publish(OrdersIngested(rows=progress.rows, bad=progress.bad, lag=progress.lag))

    def _write_report(self, spark: Any, cancelled: threading.Event) -> ReportWritten:
        options = ForensicsOptions(
            target=str(self.tables), bootstrap_servers=self._bootstrap_servers
        )
        started_at = time.monotonic()
        summary = run_forensics(spark, options, stop=cancelled)
        report = write_report(spark, str(self.tables), str(self.report))
        return ReportWritten(
            path=str(self.report),
            rebalances=summary.table_summary["tables"]["rebalances"],
            findings=read_findings(report),
            seconds=time.monotonic() - started_at,
        )


def read_findings(report: Report) -> tuple[ReportFinding, ...]:
    """Return the findings of all groups, the most severe first."""
    found = [
        ReportFinding(
            group_id=group.group_id,
            finding=each.finding,
            severity=each.severity,
            what=each.what,
            advice=each.advice,
        )
        for group in report.details
        for each in group.findings
    ]
    return tuple(sorted(found, key=lambda each: _SEVERITY_ORDER.get(each.severity, 2)))
