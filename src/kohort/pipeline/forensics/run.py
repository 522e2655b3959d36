"""One run of the forensics: bronze brought up to date, every table built anew, a report written.

From a copied log it is one pass. From a cluster, bronze is a stream under a group of its own, which
is left out of the tables; then tables are built once, or, while it goes on, again and again.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kohort.pipeline.forensics import bronze, tables
from kohort.pipeline.forensics.building import Builder
from kohort.pipeline.forensics.live import LiveBronze
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.wish import ForensicsWish, check
from kohort.types import value

_LOOK_S: Final = 0.25
_IDLE_S: Final = 60.0

_ENDS_AS_ROWS: Final = (
    "timestamp_millis(at_ms) AS at",
    "topic",
    "int(partition) AS partition",
    "log_start",
    "log_end",
)

Watch = Callable[[str, int, int], None]
"""Hears of what is done: in words, which step it is, and of how many; 0 where nobody knows."""


@value
class ForensicsSummary:
    records: int
    """That bronze has."""
    figures: Mapping[str, Any]
    """What the tables hold, as the store has it."""
    torn: tuple[str, ...]
    """Ends of copied logs that were left out."""
    seconds: float


def run(
    spark: SparkSession,
    wish: ForensicsWish,
    *,
    ending: threading.Event | None = None,
    watch: Watch = lambda *_: None,
    on_built: Callable[[], None] = lambda: None,
) -> ForensicsSummary:
    """`on_built` is called whenever all tables are complete."""
    check(wish)
    return _Run(spark, wish, ending or threading.Event(), watch, on_built).play()


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        wish: ForensicsWish,
        ending: threading.Event,
        watch: Watch,
        on_built: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._wish = wish
        self._ending = ending
        self._watch = watch
        self._on_built = on_built
        self._store = Store(spark, wish.target)
        self._began_at = time.monotonic()
        self._torn: tuple[str, ...] = ()
        self._figures: dict[str, Any] = {}
        self._rows = 0

    def play(self) -> ForensicsSummary:
        if self._wish.log is not None:
            self._copy(self._wish.log)
            self._build()
        elif self._wish.is_continuous:
            self._follow(self._start(self._wish.every_s))
        else:
            self._await(self._start(None))
            self._build()
        return ForensicsSummary(
            records=self._store.read(tables.RECORDS).count(),
            figures=self._figures,
            torn=self._torn,
            seconds=time.monotonic() - self._began_at,
        )

    def _copy(self, log: str) -> None:
        self._watch("records of the log", 0, 0)
        surveyed = bronze.ingest(self._spark, log, self._store.address(tables.RECORDS))
        self._torn = tuple(f"{each.path}: {each.reason}" for each in surveyed.torn)
        if self._wish.ends is not None:
            rows = self._spark.read.json(self._wish.ends).selectExpr(*_ENDS_AS_ROWS)
            self._store.write(tables.ENDS, rows)

    def _start(self, every_s: float | None) -> StreamingQuery:
        live = LiveBronze(self._spark, self._store, self._wish)
        return live.start(every_s=every_s, then=self._count)

    def _count(self, rows: int) -> None:
        self._rows += rows
        self._watch(f"{self._rows} records copied", 0, 0)

    def _await(self, query: StreamingQuery) -> None:
        try:
            while query.isActive and not self._ending.is_set():
                self._ending.wait(_LOOK_S)
        finally:
            self._stop(query)

    def _follow(self, query: StreamingQuery) -> None:
        built, not_before = -1, 0.0
        try:
            while query.isActive and not self._ending.wait(_LOOK_S):
                if self._rows != built and time.monotonic() >= not_before:
                    built = self._rows
                    self._build()
                    not_before = time.monotonic() + self._wish.rebuild_s
        finally:
            self._stop(query)
        if self._rows != built:
            self._build()

    def _stop(self, query: StreamingQuery) -> None:
        """Between two batches, if that is soon; a batch that is cut off is done again."""
        end = time.monotonic() + _IDLE_S
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < end:
            time.sleep(_LOOK_S)
        query.stop()
        failure = query.exception()
        if failure is not None:
            raise failure

    def _build(self) -> None:
        builder = Builder(
            self._store,
            since=self._wish.since,
            groups=self._wish.groups,
            without=() if self._wish.log is not None else (self._wish.group_id,),
            watch=self._watch,
        )
        self._figures = builder.build()
        self._on_built()
