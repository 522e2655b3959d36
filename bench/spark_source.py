"""A topic into Spark: our source compared with Spark's own Kafka connector, in one Spark, by turns.

Both read the same topics from beginning to end from the same node, which is a separate process on
the same machine. Wall-clock time counts: Spark's tasks, its Python workers and the node share the
cores. Rows are discarded (noop) or written to Parquet.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

import kohort.pipeline
from bench.kit.client import Client
from bench.kit.harness import Effort, Result, tell
from bench.node import announced_port, ended
from kohort.pipeline.decode import Decoder, PartitionSlice
from kohort.types import Millis, Offset, Partition, Topic, value
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.compression import Codec
from tests.apache.jars import fetch, read_list

PARTITIONS = 4
LIST = Path(__file__).parents[1] / "tests" / "contract" / "spark" / "jars.txt"


@value
class Workload:
    name: str
    count: int
    size: int
    codec: Codec
    batch_count: int
    """Of the records in one batch: none is larger than brokers take unless told otherwise, 1 MB."""

    @property
    def topic(self) -> str:
        return self.name.replace(" ", "-").replace(",", "")

    def at_most(self, count: int) -> int:
        """The largest number of whole batches in every partition, at least one each."""
        turn = self.batch_count * PARTITIONS
        return max(turn, count - count % turn)


WORKLOADS = (
    Workload(name="100 B", count=10_000_000, size=100, codec=Codec.NONE, batch_count=5_000),
    Workload(name="100 B, lz4", count=10_000_000, size=100, codec=Codec.LZ4, batch_count=5_000),
    Workload(name="1 KB", count=2_000_000, size=1_000, codec=Codec.NONE, batch_count=800),
)

TARGETS = {"noop": 1 / 1.2, "Parquet": 1.0}
"""Ratio to the connector's time."""

DECODE_TARGET_US = 0.2
"""Five million records a second and core."""


def make_batch(workload: Workload) -> bytes:
    """Values are half random and half text, so that they compress like real records."""
    dice = Random(7)  # noqa: S311  # the same bytes every time
    records = tuple(
        NewRecord(
            key=b"key-%012d" % number,
            value=dice.randbytes(workload.size // 2)
            + b"status=shipped;" * (workload.size // 30 + 1),
            timestamp=Millis(1_700_000_000_000 + number),
        )
        for number in range(workload.batch_count)
    )
    return encode(NewBatch(records=records, codec=workload.codec))


def fill(port: int, workload: Workload, count: int, batch: bytes) -> None:
    topic = workload.topic
    servers = f"127.0.0.1:{port}"
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = NewTopic(topic, PARTITIONS, config={"retention.ms": "-1"})
    admin.create_topics([wanted])[topic].result()
    with Client(port) as client:
        for number in range(count // workload.batch_count):
            data = PartitionProduceData(index=Partition(number % PARTITIONS), records=batch)
            request = ProduceRequest(
                acks=1,
                timeout_ms=Millis(30_000),
                topic_data=(TopicProduceData(name=Topic(topic), partition_data=(data,)),),
            )
            answer = client.ask(request, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


@contextmanager
def serve(data: str) -> Iterator[int]:
    """Start a node on any core."""
    words = [sys.executable, "-m", "kohort", "serve", "--listen", "127.0.0.1:0", "--data", data]
    words += ["--set", "kohort.durability=os", "--set", "log.retention.ms=-1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with ended(process):
        yield announced_port(process)


@contextmanager
def start_spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    wanted = read_list(LIST.read_text("utf-8"))
    home = fetch("spark-kafka", wanted)
    jars = ",".join(f"{home / jar.path}" for jar in wanted)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        # As our own commands set it, and as the guide advises: the connector does not notice.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    kohort.pipeline.register(spark)
    try:
        yield spark
    finally:
        spark.stop()


def read(spark: SparkSession, source: str, port: int, topic: str) -> DataFrame:
    return (
        spark.read.format(source)
        .option("kafka.bootstrap.servers", f"127.0.0.1:{port}")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )


def into_noop(frame: DataFrame, _: Path) -> None:
    frame.write.format("noop").mode("overwrite").save()


def into_parquet(frame: DataFrame, directory: Path) -> None:
    frame.write.mode("overwrite").parquet(f"{directory}")


SINKS: dict[str, Callable[[DataFrame, Path], None]] = {
    "noop": into_noop,
    "Parquet": into_parquet,
}


def timed(spark: SparkSession, source: str, port: int, topic: str, sink: str) -> float:
    directory = Path(tempfile.mkdtemp(prefix="kohort-bench-"))
    try:
        frame = read(spark, source, port, topic)
        began = time.perf_counter()
        SINKS[sink](frame, directory)
        return time.perf_counter() - began
    finally:
        shutil.rmtree(directory)


def contest(
    spark: SparkSession, port: int, workload: Workload, count: int, rounds: int
) -> Iterator[Result]:
    for sink in SINKS:
        times: dict[str, list[float]] = {"kohort": [], "kafka": []}
        for number in range(rounds):
            order = ("kohort", "kafka") if number % 2 else ("kafka", "kohort")
            for source in order:
                times[source].append(timed(spark, source, port, workload.topic, sink))
        ours, theirs = (statistics.median(times[source]) for source in ("kohort", "kafka"))
        sys.stderr.write(
            f"{workload.name} into {sink}: kohort {count / ours:,.0f} rows/s "
            f"({_spread(times['kohort'])}), connector {count / theirs:,.0f} rows/s "
            f"({_spread(times['kafka'])})\n"
        )
        yield Result(
            metric=f"{workload.name} into {sink} ({count / ours:,.0f} rows/s)",
            kohort=ours,
            peer=theirs,
            target=TARGETS[sink],
            unit="s",
        )


def _spread(times: list[float]) -> str:
    return f"{min(times):.1f} to {max(times):.1f} s"


def measure_decoder(workload: Workload, batch: bytes) -> Result:
    """The kernel and Arrow alone, on one core, without Spark, node or network."""
    content = batch * max(1, 4_000_000 // len(batch))
    count = workload.batch_count * (len(content) // len(batch))
    wanted = PartitionSlice(
        topic=Topic("t"),
        partition=Partition(0),
        first=Offset(0),
        stop=Offset(workload.batch_count),
    )
    best = []
    for _ in range(15):
        decoder = Decoder(wanted, includes_headers=False)
        began = time.process_time()
        rows = sum(each.num_rows for each in decoder.decode(content))
        best.append((time.process_time() - began) / rows * 1e6)
        assert rows == count
    cost = statistics.median(best)
    return Result(
        metric=f"decoder alone, {workload.name} ({1e6 / cost:,.0f} records/s)",
        kohort=cost,
        peer=DECODE_TARGET_US,
        target=1.0,
    )


def measure(effort: Effort) -> Iterator[Result]:
    with (
        tempfile.TemporaryDirectory(prefix="kohort-bench-") as data,
        serve(data) as port,
        start_spark() as spark,
    ):
        for workload in WORKLOADS:
            batch = make_batch(workload)
            yield measure_decoder(workload, batch)
            count = workload.at_most(effort.pick(workload.count, workload.count // 100))
            fill(port, workload, count, batch)
            warm_up(spark, port, workload.topic)
            yield from contest(spark, port, workload, count, effort.rounds)


def warm_up(spark: SparkSession, port: int, topic: str) -> None:
    for source in ("kohort", "kafka"):
        frame = read(spark, source, port, topic)
        into_noop(frame.limit(100_000), Path())


if __name__ == "__main__":
    tell(__doc__ or "", "connector", measure, rounds=3)
