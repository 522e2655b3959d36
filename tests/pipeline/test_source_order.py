"""The source relies on the order of Spark's calls. These tests fail if a new Spark changes it.

Most important: Spark calls `latestOffset(start)` and `commit(end)` for a batch only after its
commit log has the batch.
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


class RecordingSource(DataSource):
    """Counts up to a number, and logs every call with the last batch in the commit log."""

    @classmethod
    def name(cls) -> str:
        return "recording"

    def schema(self) -> str:
        return "number BIGINT"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        return RecordingReader(dict(self.options))


class RecordingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: dict[str, str]) -> None:
        self._end = int(options["end"])
        self._log = Path(options["log"])
        self._commits = Path(options["commits"])

    def _log_call(self, call: str, offset: int) -> None:
        committed = max((int(each.name) for each in self._commits.glob("[0-9]*")), default=-1)
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps([call, offset, committed]) + "\n")

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._log_call("prepare", 0)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"at": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(10)

    def latestOffset(  # noqa: N802
        self,
        start: dict[str, Any],
        limit: ReadLimit,  # noqa: ARG002
    ) -> dict[str, Any]:
        self._log_call("latest", start["at"])
        return {"at": min(start["at"] + 10, self._end)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._log_call("partitions", end["at"])
        return [InputPartition((start["at"], end["at"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        first, stop = partition.value
        yield pa.RecordBatch.from_pydict({"number": list(range(first, stop))})

    def commit(self, end: dict[str, Any]) -> None:
        self._log_call("commit", end["at"])


def run(spark: SparkSession, directory: Path, end: int) -> list[tuple[str, int, int]]:
    """The calls of one run: the method, its offset, and the last batch in the commit log."""
    log = directory / "calls"
    log.unlink(missing_ok=True)
    (directory / "checkpoint" / "commits").mkdir(parents=True, exist_ok=True)
    spark.dataSource.register(RecordingSource)
    frame = spark.readStream.format("recording").options(
        end=str(end), log=f"{log}", commits=f"{directory / 'checkpoint' / 'commits'}"
    )
    query = (
        frame.load()
        .writeStream.format("noop")
        .option("checkpointLocation", f"{directory / 'checkpoint'}")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90)
    return [tuple(json.loads(line)) for line in log.read_text("utf-8").splitlines()]


def test_spark_passes_a_batch_only_after_its_commit_log_has_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    calls = run(spark, tmp_path, 25)

    named = [call for call in calls if call[0] in ("latest", "commit") and call[1] > 0]
    assert named
    for call, offset, committed in named:
        batch = -(-offset // 10) - 1
        assert committed >= batch, f"{call}({offset}), but the commit log ends at {committed}"


def test_spark_calls_latest_offset_after_the_last_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without this, the last batch of a run would never be committed to the group."""
    calls = run(spark, tmp_path, 25)

    assert calls[-1][:2] == ("latest", 25)
    assert ("commit", 25) not in [call[:2] for call in calls]


def test_a_batch_is_planned_after_latest_offset(spark: SparkSession, tmp_path: Path) -> None:
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


def test_a_restart_begins_with_the_last_batch(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, 25)

    calls = [call[:2] for call in run(spark, tmp_path, 25)]

    assert [call for call in calls if call[0] != "prepare"] == [("latest", 25)]
