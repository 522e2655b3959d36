"""One run of an ingest: a query started, watched, and ended between two batches.

To end, no batch may begin any more; the one that runs is finished, Spark's log has it, the source
is asked for news once more and tells the group; then the query stops, and its member leaves.
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kohort.pipeline import register
from kohort.pipeline.ingest.asking import is_group_told
from kohort.pipeline.ingest.files import Files
from kohort.pipeline.ingest.schema import read_schema
from kohort.pipeline.ingest.shaping import Parsed, Raw, Shape
from kohort.pipeline.ingest.table import BAD, CHECKPOINT, DATA, About, Table
from kohort.pipeline.ingest.wish import (
    EndedAtOnce,
    Ending,
    Progress,
    Summary,
    Wish,
    check_wish,
    source_options,
)
from kohort.pipeline.ingest.writing import BatchWriter
from kohort.pipeline.source.stream_offset import StreamOffset, unnest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 0.25
_TELL_S: Final = 20.0
"""How long an ending run waits for the group to be told; the next run tells it otherwise."""
_LEAVE_S: Final = 10.0

_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # Whatever reads Parquet reads these; the older form is Spark's alone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # How often an idle query looks for news, and says that it has.
    "spark.sql.streaming.pollingDelay": "500ms",
    "spark.sql.streaming.noDataProgressEventInterval": "0",
}

Watch = Callable[[Progress], None]


def run(
    spark: "SparkSession",
    wish: Wish,
    *,
    ending: Ending | None = None,
    watch: Watch | None = None,
) -> Summary:
    """Run until everything there is has been read, or, if continuous, until told to end."""
    check_wish(wish)
    own = _clone(spark)
    for name, text in _SETTINGS.items():
        own.conf.set(name, text)
    shape = _choose_shape(wish)
    table = Table(Files(own, wish.target))
    table.open(
        About(
            topics=wish.topics,
            group_id=wish.group_id,
            columns=shape.columns,
            partition_by=wish.partition_by,
            is_parsed=shape.can_be_bad,
        )
    )
    return _Run(own, wish, table, shape).play(ending or Ending(), watch or (lambda _: None))


def _clone(spark: "SparkSession") -> "SparkSession":
    """A session with settings of its own, that knows the formats of the one it comes from.

    Spark's `newSession` would neither know ours nor take it, if the other one does.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415  # words about an ingest need no Spark

    register(spark)
    parent: Any = spark
    return SparkSession(spark.sparkContext, parent._jsparkSession.cloneSession())  # noqa: SLF001


def _choose_shape(wish: Wish) -> Shape:
    if wish.schema is None:
        return Raw(wish.partition_by)
    return Parsed(read_schema(wish.schema), wish.partition_by)


class _Run:
    def __init__(self, spark: "SparkSession", wish: Wish, table: Table, shape: Shape) -> None:
        self._spark = spark
        self._wish = wish
        self._table = table
        self._id = uuid.uuid4().hex
        self._writer = BatchWriter(
            table,
            shape,
            run=self._id,
            partition_by=wish.partition_by,
            every_s=wish.every_s if wish.is_continuous else 0.0,
        )
        self._began_at = time.monotonic()
        self._news = _News()

    def play(self, ending: Ending, watch: Watch) -> Summary:
        self._table.claim(self._id)
        before = _find_members(self._spark)
        query = self._start()
        try:
            self._follow(query, ending, watch)
        finally:
            # Interrupts whatever still runs: something only after an error, or in a hurry.
            query.stop()
        if ending.at_once.is_set():
            raise EndedAtOnce
        self._look(query)
        failure = self._writer.failure or query.exception()
        if failure is not None and not self._writer.has_refused:
            raise failure
        has_left = _await_leaving(self._spark, before)
        return self._sum_up(has_left=has_left, is_interrupted=ending.after_batch.is_set())

    def _start(self) -> "StreamingQuery":
        reader = self._spark.readStream.format("kohort").options(**source_options(self._wish))
        writer = reader.load().writeStream.foreachBatch(self._writer.write)
        writer = writer.option("checkpointLocation", self._table.files.address(CHECKPOINT))
        if self._wish.is_continuous:
            writer = writer.trigger(processingTime="0 seconds")
        else:
            writer = writer.trigger(availableNow=True)
        return writer.start()

    def _follow(self, query: "StreamingQuery", ending: Ending, watch: Watch) -> None:
        """Until it has ended, or may be stopped without harm."""
        give_up_at = float("inf")
        while query.isActive:
            self._look(query)
            watch(self._progress(is_ending=ending.after_batch.is_set()))
            if ending.at_once.is_set():
                return
            if not ending.after_batch.wait(_LOOK_S):
                continue
            self._writer.close()
            if give_up_at == float("inf") or self._writer.is_busy:
                give_up_at = time.monotonic() + _TELL_S
            elif self._is_told() or time.monotonic() > give_up_at:
                return
            ending.at_once.wait(_LOOK_S)

    def _is_told(self) -> bool:
        """Whether the group knows of the last batch; not to be judged by news from before it."""
        last = self._writer.written.last_batch
        return last < 0 or (self._news.batch > last and self._news.is_told)

    def _look(self, query: "StreamingQuery") -> None:
        told = query.lastProgress
        if told is not None:
            self._news.read(json.loads(told.json))
            self._writer.has_backlog = self._news.lag is None or self._news.lag > 0

    def _progress(self, *, is_ending: bool) -> Progress:
        written, news = self._writer.written, self._news
        return Progress(
            rows=written.rows,
            bad=written.bad,
            batches=written.batches,
            seconds=time.monotonic() - self._began_at,
            rows_per_second=news.rows_per_second,
            lag=news.lag,
            group_state=news.group_state,
            generation=news.generation,
            is_ending=is_ending,
        )

    def _sum_up(self, *, has_left: bool, is_interrupted: bool) -> Summary:
        written, commit = self._writer.written, self._table.find_last_commit()
        ends = StreamOffset.read(json.loads(commit.end)).positions if commit else {}
        return Summary(
            rows=written.rows,
            bad=written.bad,
            batches=written.batches,
            seconds=time.monotonic() - self._began_at,
            lag=self._news.lag,
            is_interrupted=is_interrupted,
            is_group_told=is_group_told(check_wish(self._wish), ends),
            has_left=has_left,
            rows_total=commit.rows_total if commit else 0,
            bad_total=commit.bad_total if commit else 0,
            target=self._table.files.root,
            data=self._table.files.address(DATA),
            bad_data=self._table.files.address(BAD),
            skipped=tuple(sorted(self._news.skipped)),
        )


class _News:
    """What the query's progress says of the source."""

    def __init__(self) -> None:
        self.batch = -1
        self.lag: int | None = None
        self.group_state = "starting"
        self.generation: int | None = None
        self.rows_per_second = 0.0
        self.is_told = False
        self.skipped: set[str] = set()

    def read(self, progress: dict[str, Any]) -> None:
        source = progress["sources"][0]
        ends = source.get("latestOffset") or {}
        group = ends.get("$group", {})
        positions = StreamOffset.read(source.get("endOffset") or {}).positions
        committed = unnest(group.get("committed", {}))
        self.batch = progress["batchId"]
        self.is_told = all(committed.get(each) == at for each, at in positions.items())
        if "$lag" in ends:
            self.lag = sum(unnest(ends["$lag"]).values())
        self.group_state = group.get("state", self.group_state)
        self.generation = group.get("generation", self.generation)
        if progress["numInputRows"]:
            self.rows_per_second = progress["processedRowsPerSecond"]
        for name, (first, stop) in ends.get("$read_by_others", {}).items():
            self.skipped.add(f"{name} {first} to {stop - 1}")


# The member's process, a child of the driver's JVM


def _find_members(spark: "SparkSession") -> set[int]:
    # Spark offers no other way to its own processes.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    children = jvm.java.lang.ProcessHandle.current().children().toArray()
    return {
        int(child.pid())
        for child in children
        if "python_streaming_source_runner" in str(child.info().commandLine().orElse(""))
    }


def _await_leaving(spark: "SparkSession", before: set[int]) -> bool:
    end = time.monotonic() + _LEAVE_S
    while _find_members(spark) - before:
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_S / 5)
    return True
