"""The source on a Spark cluster, whose executors are other processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kohort
from tests.client.node_cluster import SETTINGS, Cluster
from tests.pipeline.query_processes import run_job, values_in
from tests.pipeline.standalone_spark import SMALL, standalone_cluster
from tests.pipeline.stream_setup import Group, numbered, once_each


@pytest.fixture(scope="module")
def kohort_cluster() -> Iterator[Cluster]:
    with kohort.Node(settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


@pytest.mark.full
def test_a_query_runs_on_a_standalone_cluster(
    spark: SparkSession, kohort_cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = (
        kohort_cluster.create_topic(4),
        Group(kohort_cluster, kohort_cluster.name_group()),
    )
    kohort_cluster.produce(topic, numbered(400, 4))
    options = {
        "kafka.bootstrap.servers": kohort_cluster.bootstrap_servers,
        "subscribe": topic,
        "group.id": group.group_id,
        "auto.offset.reset": "earliest",
        "maxOffsetsPerTrigger": "300",
        "minPartitions": "6",
    }
    directory = tmp_path / "job"
    directory.mkdir()

    with standalone_cluster(tmp_path / "spark-cluster") as url:
        code, output = run_job(directory, options, master=url, settings=SMALL)

    assert code == 0, output
    assert values_in(spark, directory) == once_each(400)
    assert group.committed() == dict.fromkeys(range(4), 100)
