"""The source on workers in processes of their own, on no files but those that all can reach."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import kohort
from tests.client.clusters import SETTINGS, Cluster
from tests.pipeline.jobs import run_job, values_in
from tests.pipeline.streams import Group, numbered, once_each
from tests.waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def kohort_cluster() -> Iterator[Cluster]:
    with kohort.Node(settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


@contextmanager
def spark_process(directory: Path, *words: str) -> Iterator[Path]:
    """A master or a worker, in a directory of its own; the path of its log."""
    directory.mkdir(parents=True)
    log = directory / "log"
    command = [str(SPARK_HOME / "bin" / "spark-class"), *words]
    environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "512m"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=environment, stdout=output, stderr=output
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


def find_in(log: Path, pattern: str) -> str:
    def look() -> str:
        found = re.search(pattern, log.read_text("utf-8", "replace"))
        return found[1] if found else ""

    return wait_until(look, 90, f"{pattern} in {log.name}")


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """A master and two workers; its address."""
    with ExitStack() as stack:
        words = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        name = "org.apache.spark.deploy.master.Master"
        log = stack.enter_context(spark_process(directory / "master", name, *words))
        url = find_in(log, r"(spark://127\.0\.0\.1:\d+)")
        for place in (directory / "one", directory / "two"):
            name = "org.apache.spark.deploy.worker.Worker"
            share = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
            rest = ("--webui-port", "0", "--work-dir", str(place / "work"))
            log = stack.enter_context(spark_process(place, name, *share, *rest, url))
            find_in(log, r"(Successfully registered)")
        yield url


def ingest_on(spark: SparkSession, cluster: Cluster, directory: Path, master: str) -> None:
    topic, group = cluster.create_topic(4), Group(cluster, cluster.name_group())
    cluster.produce(topic, numbered(400, 4))
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "subscribe": topic,
        "group.id": group.group_id,
        "auto.offset.reset": "earliest",
        "maxOffsetsPerTrigger": "300",
        "minPartitions": "6",
    }
    settings = {"spark.executor.memory": "512m", "spark.cores.max": "2"}

    code, said = run_job(directory, options, master=master, settings=settings)

    assert code == 0, said
    assert values_in(spark, directory) == once_each(400)
    assert group.committed() == dict.fromkeys(range(4), 100)


def test_a_query_runs_on_workers_in_other_processes(
    spark: SparkSession, kohort_cluster: Cluster, tmp_path: Path
) -> None:
    try:
        ingest_on(spark, kohort_cluster, tmp_path, "local-cluster[2,1,1024]")
    finally:
        # Such a cluster has nowhere else to put the logs of its workers.
        shutil.rmtree(SPARK_HOME / "work", ignore_errors=True)


def test_a_query_runs_on_a_standalone_cluster(
    spark: SparkSession, kohort_cluster: Cluster, tmp_path: Path
) -> None:
    with standalone_cluster(tmp_path / "spark-cluster") as url:
        (tmp_path / "job").mkdir()
        ingest_on(spark, kohort_cluster, tmp_path / "job", url)
