"""`df.write.format("kohort")` and `df.writeStream.format("kohort")`, on Kohort and Apache Kafka."""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kohort
from kohort.pipeline import register
from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.sink import writers
from kohort.pipeline.sink.write_plan import BadColumns
from tests.pipeline.sink_setup import HEADERS, Target, contents


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    register(spark)


@pytest.fixture(scope="module")
def node() -> Iterator[Target]:
    with kohort.Node(settings={"auto.create.topics.enable": False}) as node:
        yield Target(node.bootstrap_servers)


@pytest.fixture(params=["kohort", "apache"])
def target(request: pytest.FixtureRequest) -> Target:
    if request.param == "kohort":
        found: Target = request.getfixturevalue("node")
        return found
    return Target(request.getfixturevalue("apache_kafka").bootstrap_servers)


def save(frame: DataFrame, options: Mapping[str, str]) -> None:
    frame.write.format("kohort").options(**options).mode("append").save()


def test_rows_are_written_unchanged(spark: SparkSession, target: Target) -> None:
    first, second = target.create_topic(2), target.create_topic()
    rows = [
        (first, 1, bytearray(b"\x00k"), "grün", [("h", bytearray(b"1")), ("h", None)]),
        (first, 0, None, "", []),
        (second, None, bytearray(b""), None, None),
    ]
    schema = f"topic string, partition int, key binary, value string, headers {HEADERS}"

    save(spark.createDataFrame(rows, schema), target.options())

    found = [*target.read(first), *target.read(second)]
    assert [(each.topic, each.partition, each.key, each.value, each.headers) for each in found] == [
        (first, 0, None, b"", ()),
        (first, 1, b"\x00k", "grün".encode(), (("h", b"1"), ("h", None))),
        (second, 0, b"", None, ()),
    ]


def test_rows_of_the_source_can_be_written_to_another_topic(
    spark: SparkSession, target: Target
) -> None:
    origin, copy = target.create_topic(2), target.create_topic(2)
    numbers = spark.range(500).selectExpr(
        "CAST(id AS STRING) value", "CAST(id % 2 AS INT) partition"
    )
    save(numbers, target.options({"topic": origin}))

    read = spark.read.format("kohort").options(**target.options({"subscribe": origin})).load()
    save(read, target.options({"topic": copy}))

    originals, copies = target.read(origin), target.read(copy)
    assert len(copies) == 500
    assert sorted((each.partition, each.value) for each in copies) == sorted(
        (each.partition, each.value) for each in originals
    )


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_all_compression_types_are_written(spark: SparkSession, target: Target, codec: str) -> None:
    topic = target.create_topic()
    frame = spark.range(2_000).selectExpr("CONCAT('value ', id) value").coalesce(1)

    save(frame, target.options({"topic": topic, "kafka.compression.type": codec}))

    assert contents(target.read(topic)) == [b"value %d" % number for number in range(2_000)]


def test_many_tasks_write_every_row_once(spark: SparkSession, node: Target) -> None:
    topic = node.create_topic(3)
    frame = spark.range(0, 20_000, 1, 4).selectExpr("CAST(id AS STRING) value")

    save(frame, node.options({"Topic": topic}))

    found = sorted(int(each or b"") for each in contents(node.read(topic)))
    assert found == list(range(20_000))


def test_rows_of_a_task_keep_their_order_for_each_key(spark: SparkSession, node: Target) -> None:
    topic = node.create_topic(3)
    frame = spark.range(5_000).selectExpr("CAST(id % 7 AS STRING) key", "CAST(id AS STRING) value")

    save(
        frame.coalesce(1),
        node.options({"topic": topic, "kafka.queue.buffering.max.messages": "100"}),
    )

    by_key: dict[bytes | None, list[int]] = {}
    for record in node.read(topic):
        by_key.setdefault(record.key, []).append(int(record.value or b""))
    assert by_key == {b"%d" % number: list(range(number, 5_000, 7)) for number in range(7)}


def test_an_empty_frame_writes_nothing(spark: SparkSession, node: Target) -> None:
    topic = node.create_topic()

    save(spark.createDataFrame([], "value string"), node.options({"topic": topic}))

    assert node.read(topic) == []


@pytest.mark.parametrize(
    ("expression", "options", "reason"),
    [
        ("id", {"topic": "t"}, "there is no column value among id"),
        ("id value", {"topic": "t"}, "the column value is bigint and must be string or binary"),
        ("'v' value", {}, "the topic is missing"),
        ("'v' value", {"topic": "t", "kafka.acks": "1"}, "kafka.acks cannot be '1'"),
        ("'v' value", {"topic": "t", "kafka.nonsense": "1"}, "kafka.nonsense: No such"),
    ],
)
def test_a_wrong_write_is_refused_before_any_task(
    spark: SparkSession, node: Target, expression: str, options: dict[str, str], reason: str
) -> None:
    frame = spark.range(1).selectExpr(expression)

    with pytest.raises(PySparkException, match=reason):
        save(frame, node.options(options))


def test_overwrite_is_refused(spark: SparkSession, node: Target) -> None:
    topic = node.create_topic()
    frame = spark.range(1).selectExpr("'v' value")

    with pytest.raises(PySparkException, match="a topic cannot be overwritten"):
        frame.write.format("kohort").options(**node.options({"topic": topic})).mode(
            "overwrite"
        ).save()

    assert node.read(topic) == []


@pytest.mark.parametrize(
    ("value", "topic", "reason"),
    [
        ("CAST(NULL AS STRING)", "CAST(NULL AS STRING)", "1 of 1 rows have no topic"),
        ("'v'", "'nowhere'", r"nowhere.*\[UNKNOWN_TOPIC_OR_PART\]"),
        ("REPEAT('x', 2000000)", "'t'", r"1 of 1 records .* t: .*\[MSG_SIZE_TOO_LARGE\]"),
    ],
)
def test_a_row_that_cannot_be_written_fails_the_job(
    spark: SparkSession, node: Target, value: str, topic: str, reason: str
) -> None:
    frame = spark.range(1).selectExpr(f"{value} value", f"{topic} topic")

    with pytest.raises(PySparkException, match=reason):
        save(frame, node.options({"kafka.topic.metadata.propagation.max.ms": "200"}))


class Streaming:
    """A query that reads text files and writes them to a topic."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._texts = folder / "texts"
        self._texts.mkdir()
        self.checkpoint = folder / "checkpoint"

    def add(self, name: str, *lines: str) -> None:
        (self._texts / name).write_text("\n".join(lines), "utf-8")

    def run(self, options: Mapping[str, str], *, is_counted: bool = False) -> None:
        """Write all files that are there now, from the checkpoint on."""
        frame = self._spark.readStream.text(f"{self._texts}")
        if is_counted:
            frame = frame.groupBy().count().selectExpr("CAST(count AS STRING) value")
        query = (
            frame.writeStream.format("kohort")
            .options(**options)
            .option("checkpointLocation", f"{self.checkpoint}")
            .outputMode("complete" if is_counted else "append")
            .queryName("sink")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


@pytest.fixture
def streaming(spark: SparkSession, tmp_path: Path) -> Streaming:
    return Streaming(spark, tmp_path)


def test_a_stream_writes_every_batch_once(streaming: Streaming, target: Target) -> None:
    topic = target.create_topic()
    options = target.options({"topic": topic})

    streaming.add("first", "1", "2")
    streaming.run(options)
    streaming.add("second", "3")
    streaming.run(options)

    assert contents(target.read(topic)) == [b"1", b"2", b"3"]


def test_a_repeated_batch_is_written_again(streaming: Streaming, node: Target) -> None:
    topic = node.create_topic()
    options = node.options({"topic": topic})
    streaming.add("first", "1", "2")
    streaming.run(options)

    # As if Spark had been killed between the write and the entry in its commit log.
    for entry in (streaming.checkpoint / "commits").iterdir():
        entry.unlink()
    streaming.run(options)

    assert contents(node.read(topic)) == [b"1", b"2", b"1", b"2"]


def test_a_stream_continues_after_a_failed_write(streaming: Streaming, node: Target) -> None:
    topic = node.create_topic()
    quick = {"kafka.topic.metadata.propagation.max.ms": "200"}
    streaming.add("first", "1", "2")

    with pytest.raises(PySparkException, match=r"nowhere.*\[UNKNOWN_TOPIC_OR_PART\]"):
        streaming.run(node.options({"topic": "nowhere", **quick}))
    streaming.run(node.options({"topic": topic, **quick}))

    assert contents(node.read(topic)) == [b"1", b"2"]


def test_complete_mode_appends_the_whole_result_with_every_batch(
    streaming: Streaming, node: Target
) -> None:
    topic = node.create_topic()
    options = node.options({"topic": topic})

    streaming.add("first", "a", "b")
    streaming.run(options, is_counted=True)
    streaming.add("second", "c")
    streaming.run(options, is_counted=True)

    assert contents(node.read(topic)) == [b"2", b"3"]


def test_writers_can_be_pickled(spark: SparkSession, node: Target) -> None:
    options = node.options({"topic": "t"})
    schema = spark.range(1).selectExpr("'v' value").schema
    pair = [
        writers.make_writer(options, schema, False),  # noqa: FBT003  # like Spark
        writers.make_stream_writer(options, schema, False),  # noqa: FBT003
    ]

    copies = pickle.loads(pickle.dumps(pair))  # noqa: S301  # our own bytes

    results = [writer.write(iter([])) for writer in copies]
    assert [(each.rows, each.size_in_bytes) for each in results] == [(0, 0), (0, 0)]


def test_the_driver_logs_what_was_written(
    spark: SparkSession, node: Target, caplog: pytest.LogCaptureFixture
) -> None:
    options = node.options({"topic": "t"})
    schema = spark.range(1).selectExpr("'v' value").schema
    caplog.set_level("INFO", "kohort.sink")
    results = [writers.Acknowledged(2, 30), writers.Acknowledged(3, 40), None]

    batch = writers.make_writer(options, schema, False)  # noqa: FBT003
    batch.commit(results[:2])
    batch.abort(results)
    stream = writers.make_stream_writer(options, schema, False)  # noqa: FBT003
    stream.commit(results[:2], 7)
    stream.abort(results, 8)

    assert caplog.messages == [
        "written rows=5 bytes=70 tasks=2 failed=0",
        "write-aborted rows=5 bytes=70 tasks=2 failed=1",
        "written batch=7 rows=5 bytes=70 tasks=2 failed=0",
        "write-aborted batch=8 rows=5 bytes=70 tasks=2 failed=1",
    ]


def test_refusals_raise_pipeline_errors(spark: SparkSession, node: Target) -> None:
    schema = spark.range(1).selectExpr("1 value").schema

    with pytest.raises(BadColumns):
        writers.make_stream_writer(node.options({"topic": "t"}), schema, False)  # noqa: FBT003
    with pytest.raises(BadSourceOption):
        writers.make_writer(node.options({"topic": "t"}), schema, True)  # noqa: FBT003
