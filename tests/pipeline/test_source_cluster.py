"""The source on workers in processes of their own, on no files but those that all can reach."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kohort
from tests.client.clusters import SETTINGS, Cluster
from tests.pipeline.jobs import run_job, values_in
from tests.pipeline.standalone import SMALL, SPARK_HOME, standalone_cluster
from tests.pipeline.streams import Group, numbered, once_each


@pytest.fixture(scope="module")
def kohort_cluster() -> Iterator[Cluster]:
    with kohort.Node(settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


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

    code, said = run_job(directory, options, master=master, settings=SMALL)

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
