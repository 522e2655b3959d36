"""The order of Spark's calls that the source relies on; a new Spark may not change it unnoticed.

The one promise that matters: `latestOffset(start)` and `commit(end)` name a batch only when Spark's
commit log has it.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType


class Noting(DataSource):
    """A counter up to a number; every call is written down, with what the commit log had then."""

    @classmethod
    def name(cls) -> str:
        return "noting"

    def schema(self) -> str:
        return "number BIGINT"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        return NotingReader(dict(self.options))


class NotingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: dict[str, str]) -> None:
        self._end = int(options["end"])
        self._journal = Path(options["journal"])
        self._commits = Path(options["commits"])

    def _note(self, call: str, offset: int) -> None:
        kept = max((int(each.name) for each in self._commits.glob("[0-9]*")), default=-1)
        with self._journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps([call, offset, kept]) + "\n")

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._note("prepare", 0)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"at": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(10)

    def latestOffset(  # noqa: N802
        self,
        start: dict[str, Any],
        limit: ReadLimit,  # noqa: ARG002
    ) -> dict[str, Any]:
        self._note("latest", start["at"])
        return {"at": min(start["at"] + 10, self._end)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._note("partitions", end["at"])
        return [InputPartition((start["at"], end["at"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        first, stop = partition.value
        yield pa.RecordBatch.from_pydict({"number": list(range(first, stop))})

    def commit(self, end: dict[str, Any]) -> None:
        self._note("commit", end["at"])


def run(spark: SparkSession, directory: Path, end: int) -> list[tuple[str, int, int]]:
    """What was called in one run up to there: the call, its offset, the last batch in the log."""
    journal = directory / "journal"
    journal.unlink(missing_ok=True)
    (directory / "checkpoint" / "commits").mkdir(parents=True, exist_ok=True)
    spark.dataSource.register(Noting)
    frame = spark.readStream.format("noting").options(
        end=str(end), journal=f"{journal}", commits=f"{directory / 'checkpoint' / 'commits'}"
    )
    query = (
        frame.load()
        .writeStream.format("noop")
        .option("checkpointLocation", f"{directory / 'checkpoint'}")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90)
    return [tuple(json.loads(line)) for line in journal.read_text("utf-8").splitlines()]


def test_spark_names_a_batch_only_when_its_commit_log_has_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    calls = run(spark, tmp_path, 25)

    told = [call for call in calls if call[0] in ("latest", "commit") and call[1] > 0]
    assert told
    for call, offset, kept in told:
        batch = -(-offset // 10) - 1
        assert kept >= batch, f"{call} of {offset}, when the log had {kept}"


def test_spark_asks_once_more_after_the_last_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Without this, the last batch of a run would never be committed to the group."""
    calls = run(spark, tmp_path, 25)

    assert calls[-1][:2] == ("latest", 25)
    assert ("commit", 25) not in [call[:2] for call in calls]


def test_a_batch_is_planned_after_its_end_was_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    calls = [call[:2] for call in run(spark, tmp_path, 25)]

    order = [call for call in calls if call[0] != "prepare"]
    assert order == [
        ("latest", 0),
        ("partitions", 10),
        ("latest", 10),
        ("commit", 10),
        ("partitions", 20),
        ("latest", 20),
        ("commit", 20),
        ("partitions", 25),
        ("latest", 25),
    ]


def test_a_restart_names_the_last_batch_first(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, 25)

    calls = [call[:2] for call in run(spark, tmp_path, 25)]

    assert [call for call in calls if call[0] != "prepare"] == [("latest", 25)]
