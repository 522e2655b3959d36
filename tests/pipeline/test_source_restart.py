"""A query that is killed at any stage goes on from its checkpoint: nothing lost, nothing twice."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.client.clusters import Cluster
from tests.pipeline.job import run_query
from tests.pipeline.jobs import run_job, values_in
from tests.pipeline.streams import Group, numbered, offsets_in, once_each

STAGES = ("before-the-sink", "before-the-commit-log", "after-the-commit-log")


def durable(checkpoint: Path) -> dict[str, int]:
    """Where the last batch ended that Spark's commit log has."""
    last = max(
        int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdecimal()
    )
    (positions,) = (each for name, each in offsets_in(checkpoint)[last].items() if name[0] != "$")
    found: dict[str, int] = positions
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_query_loses_nothing_and_repeats_nothing(
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

    killed, said = run_job(tmp_path, options, kill=stage)
    assert killed == -9, said
    unfinished = offsets_in(tmp_path / "checkpoint")
    kept = durable(tmp_path / "checkpoint")
    for partition, offset in group.committed().items():
        assert offset <= kept[str(partition)], "the group leads the checkpoint"
    run_query(spark, tmp_path, options)

    assert values_in(spark, tmp_path) == once_each(50)
    after = offsets_in(tmp_path / "checkpoint")
    assert {number: after[number] for number in unfinished} == unfinished
    assert group.committed() == {0: 25, 1: 25}
