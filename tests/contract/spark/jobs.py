"""Spark jobs with the Kafka connector, in a process whose JVM has the connector's jars.

Other tests use a Spark without them. Results are plain values, so that callers need no Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.pipeline.spark_settings import FAST_SETTINGS

SCHEMA = "topic string, partition int, key string, value string, headers array<{header}>"
HEADER = "struct<key: string, value: binary>"

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A record that Spark wrote or read."""

    topic: str
    partition: int | None = None
    offset: int = -1
    key: str | None = None
    value: str | None = None
    headers: Headers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """One run of a query until it has read all available records."""

    rows_per_batch: tuple[int, ...]
    """The sizes of the batches that are not empty."""
    failure: str | None


def start(jars: Sequence[Path]) -> None:
    """Start the Spark session of this process."""
    (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(f"{jar}" for jar in jars))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config(map={**FAST_SETTINGS, "spark.sql.shuffle.partitions": "1"})
        .getOrCreate()
        .sparkContext.setLogLevel("ERROR")
    )


def write(options: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Write records, each to the topic and partition that it names."""
    data = [
        (row.topic, row.partition, row.key, row.value, [_header(each) for each in row.headers])
        for row in rows
    ]
    frame = _spark().createDataFrame(data, SCHEMA.format(header=HEADER))
    frame.write.format("kafka").options(**options).option("includeHeaders", "true").save()


def read(options: Mapping[str, str]) -> list[Row]:
    """The result of a batch query, ordered by topic, partition and offset."""
    frame = _spark().read.format("kafka").options(**options)
    return _rows(frame.option("includeHeaders", "true").load())


def count(options: Mapping[str, str]) -> tuple[int, int]:
    """The number of records and tasks of a batch query."""
    frame = _spark().read.format("kafka").options(**options).load()
    return frame.count(), frame.rdd.getNumPartitions()


def stream_to_files(options: Mapping[str, str], folder: Path) -> Streamed:
    """Append all available records to the directory, with a checkpoint beside it."""
    frame = _spark().readStream.format("kafka").options(**options).load()
    texts = frame.selectExpr(
        "topic", "partition", "offset", "cast(key as string) key", "cast(value as string) value"
    )
    return _run(texts, "json", {"path": f"{folder / 'rows'}"}, folder / "checkpoint")


def read_files(folder: Path) -> list[Row]:
    frame = _spark().read.schema(
        "topic string, partition int, offset long, key string, value string"
    )
    found = frame.json(f"{folder / 'rows'}").collect()
    return sorted((Row(**row.asDict()) for row in found), key=_place)


def stream_to_kafka(
    options: Mapping[str, str], target: Mapping[str, str], folder: Path
) -> Streamed:
    """Copy topics to a topic."""
    frame = _spark().readStream.format("kafka").options(**options).load()
    return _run(frame.select("key", "value"), "kafka", target, folder / "checkpoint")


def _run(frame: DataFrame, sink: str, options: Mapping[str, str], checkpoint: Path) -> Streamed:
    query = (
        frame.writeStream.format(sink)
        .options(**options)
        .option("checkpointLocation", f"{checkpoint}")
        .trigger(availableNow=True)
        .start()
    )
    failure = None
    try:
        query.awaitTermination()
    except Exception as error:  # reported to the caller
        failure = f"{error}"
    rows = (progress["numInputRows"] for progress in query.recentProgress)
    return Streamed(rows_per_batch=tuple(filter(None, rows)), failure=failure)


def _rows(frame: DataFrame) -> list[Row]:
    rows = [
        Row(
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            key=_text(row["key"]),
            value=_text(row["value"]),
            headers=tuple((each["key"], bytes(each["value"])) for each in row["headers"] or ()),
        )
        for row in frame.collect()
    ]
    return sorted(rows, key=_place)


def _place(row: Row) -> tuple[str, int | None, int]:
    return row.topic, row.partition, row.offset


def _header(header: tuple[str, bytes]) -> dict[str, object]:
    return {"key": header[0], "value": bytearray(header[1])}


def _text(data: Any) -> str | None:
    return None if data is None else bytes(data).decode()


def _spark() -> SparkSession:
    session = SparkSession.getActiveSession()
    assert session is not None, "start() has made one"
    return session
