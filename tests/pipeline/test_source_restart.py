"""A query killed at any stage resumes from its checkpoint: no record is lost or repeated."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.client.node_cluster import Cluster
from tests.pipeline.query_process import run_query
from tests.pipeline.query_processes import run_job, values_in
from tests.pipeline.stream_setup import Group, numbered, offsets_in, once_each

STAGES = (
    "before-the-sink",
    pytest.param("before-the-commit-log", marks=pytest.mark.full),
    pytest.param("after-the-commit-log", marks=pytest.mark.full),
)


def durable_positions(checkpoint: Path) -> dict[str, int]:
    """The end of the last batch in Spark's commit log."""
    last = max(
        int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdecimal()
    )
    (positions,) = (each for name, each in offsets_in(checkpoint)[last].items() if name[0] != "$")
    found: dict[str, int] = positions
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_query_loses_and_repeats_no_record(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, stage: str
) -> None:
    topic, group = cluster.create_topic(2), Group(cluster, cluster.name_group())
    cluster.produce(topic, numbered(50, 2))
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "subscribe": topic,
        "group.id": group.group_id,
        "auto.offset.reset": "earliest",
        "maxOffsetsPerTrigger": "20",
        "kafka.session.timeout.ms": "6000",
    }

    code, output = run_job(tmp_path, options, kill=stage)
    assert code == -9, output
    unfinished = offsets_in(tmp_path / "checkpoint")
    committed = durable_positions(tmp_path / "checkpoint")
    for partition, offset in group.committed().items():
        assert offset <= committed[str(partition)], "the group leads the checkpoint"
    run_query(spark, tmp_path, options)

    assert values_in(spark, tmp_path) == once_each(50)
    after = offsets_in(tmp_path / "checkpoint")
    assert {number: after[number] for number in unfinished} == unfinished
    assert group.committed() == {0: 25, 1: 25}
