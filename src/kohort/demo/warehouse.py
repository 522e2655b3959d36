"""Spark's part: all orders kept as Parquet, and the history of all groups explained. One JVM.

The ingest is a member of the group `warehouse`; it holds the session open. The forensics are run in
the same session from any other thread, one at a time.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.demo.cast import ORDERS, WAREHOUSE
from kohort.demo.console import FORENSICS
from kohort.demo.news import Explained, Explaining, Found, Ingested, SparkReady
from kohort.demo.parts import OnEnd, start_part
from kohort.demo.shop import SCHEMA
from kohort.pipeline.forensics.wish import ForensicsWish
from kohort.pipeline.ingest.explaining import explain
from kohort.pipeline.ingest.wish import Ending, Progress, Wish
from kohort.pipeline.session import SessionWish, check_java, check_spark, open_session

if TYPE_CHECKING:
    from kohort.pipeline.forensics.report import Report

_EVERY_S: Final = 3.0
_TELL_S: Final = 15.0
"""Between two lines about an ingest that goes well."""
_LOOK_S: Final = 0.1
_PATIENCE_S: Final = 120.0
"""With an ingest that keeps nothing new: a busy machine may need a minute for its first batch."""

_SETTINGS: Final = {
    "spark.driver.memory": "1g",
    # There is little data: to compile queries, or to change their plans while they run, takes
    # longer than to run them as they are.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # One compiler of Java's two, with room for all that it makes: Java would give it a quarter.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=200m"
    ),
}

_TAG: Final = "kohort-demo-forensics"

_RANKS: Final = {"critical": 0, "warning": 1}


class NotReady(Exception):
    """Spark has not started, or has ended."""


def check_spark_runs() -> None:
    """NoSpark, with a sentence, where Spark cannot run."""
    check_spark()
    check_java()


class Warehouse:
    def __init__(
        self,
        bootstrap_servers: str,
        directory: Path,
        *,
        tell: Callable[[SparkReady | Ingested | Explaining | Explained], None],
        on_end: OnEnd,
    ) -> None:
        self.table = directory / "orders"
        self.tables = directory / FORENSICS
        self.report = directory / "report.html"
        self._bootstrap_servers = bootstrap_servers
        self._tell = tell
        self._told_at = float("-inf")
        self._told = Progress()
        self._progress = Progress()
        self._ending = Ending()
        self._spark: Any = None
        self._has_begun = threading.Event()
        """Whether there is a session, or never will be."""
        self._is_ingested = threading.Event()
        self._closing = threading.Event()
        self._one_at_a_time = threading.Lock()
        self._on_end = on_end
        self._thread = start_part("Spark", self._run, on_end)

    @property
    def ingested(self) -> Progress:
        return self._progress

    def finish_ingest(self, orders: int) -> None:
        """When it has them all, or nothing has come for a while; it leaves its group."""
        self._has_begun.wait()
        seen, give_up_at = -1, 0.0
        while (kept := self._progress.rows + self._progress.bad) < orders:
            if kept > seen:
                seen, give_up_at = kept, time.monotonic() + _PATIENCE_S
            if self._is_ingested.wait(_LOOK_S) or time.monotonic() > give_up_at:
                break
        self._ending.after_batch.set()
        self._is_ingested.wait()

    def explain(self, abandoning: threading.Event | None = None) -> None:
        """Make tables and report of everything that has happened so far.

        It fails soon after it is abandoned; the next one begins where it left off.
        """
        abandoning = abandoning or threading.Event()
        self._has_begun.wait()
        with self._one_at_a_time:
            if abandoning.is_set():
                return
            if self._spark is None:
                raise NotReady("Spark has not started")
            self._spark.sparkContext.addJobTag(_TAG)
            try:
                self._tell(Explaining())
                self._tell(self._explain(self._spark, abandoning))
            finally:
                self._spark.sparkContext.removeJobTag(_TAG)

    def cancel_jobs(self) -> None:
        """Of the forensics, those that run at this moment."""
        if self._spark is not None:
            self._spark.sparkContext.cancelJobsWithTag(_TAG)

    def close(self) -> None:
        self._ending.after_batch.set()
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            wish = SessionWish(app_name="kohort demo", settings=_SETTINGS)
            with open_session(wish) as spark:
                self._tell(SparkReady())
                self._spark = spark
                self._has_begun.set()
                self._ingest(spark)
                self._is_ingested.set()
                self._closing.wait()
                with self._one_at_a_time:
                    self._spark = None
        finally:
            self._has_begun.set()
            self._is_ingested.set()

    def _ingest(self, spark: Any) -> None:
        from kohort.pipeline.ingest.running import run  # noqa: PLC0415  # it needs a Spark

        wish = Wish(
            bootstrap_servers=self._bootstrap_servers,
            topics=(ORDERS,),
            group_id=WAREHOUSE,
            target=str(self.table),
            schema=SCHEMA,
            partition_by=("date",),
            is_continuous=True,
            every_s=_EVERY_S,
            kafka={"client.id": "spark"},
        )
        try:
            summary = run(spark, wish, ending=self._ending, watch=self._watch)
        # The forensics may go on all the same.
        except Exception as error:
            self._on_end("ingest", explain(error))
        else:
            self._progress = Progress(
                rows=summary.rows, bad=summary.bad, batches=summary.batches, lag=summary.lag
            )

    def _watch(self, progress: Progress) -> None:
        self._progress = progress
        if progress.rows == self._told.rows:
            return
        now = time.monotonic()
        if now >= self._told_at + _TELL_S:
            self._told, self._told_at = progress, now
            self._tell(Ingested(rows=progress.rows, bad=progress.bad, lag=progress.lag))

    def _explain(self, spark: Any, abandoning: threading.Event) -> Explained:
        from kohort.pipeline.forensics.report import write_report  # noqa: PLC0415  # as above
        from kohort.pipeline.forensics.run import run  # noqa: PLC0415

        wish = ForensicsWish(target=str(self.tables), bootstrap_servers=self._bootstrap_servers)
        began_at = time.monotonic()
        summary = run(spark, wish, ending=abandoning)
        report = write_report(spark, str(self.tables), str(self.report))
        return Explained(
            path=str(self.report),
            rebalances=summary.figures["tables"]["rebalances"],
            findings=read_findings(report),
            seconds=time.monotonic() - began_at,
        )


def read_findings(report: "Report") -> tuple[Found, ...]:
    """Of all groups, the gravest first."""
    found = [
        Found(
            group_id=story.group_id,
            finding=each.finding,
            severity=each.severity,
            what=each.what,
            advice=each.advice,
        )
        for story in report.stories
        for each in story.findings
    ]
    return tuple(sorted(found, key=lambda each: _RANKS.get(each.severity, 2)))
