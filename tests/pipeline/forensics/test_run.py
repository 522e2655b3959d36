"""Complete runs, from a copied log and from a running cluster."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.options import ForensicsOptions
from kohort.pipeline.forensics.run import run
from kohort.pipeline.forensics.store import NoTables, Store
from tests.client.consumer_crowd import crowd_of
from tests.client.node_cluster import Cluster
from tests.pipeline.forensics.forensics_process import generate_history, triggers_in

SCENARIOS = ("deploy-in-a-row", "crash-loop", "steady")


@pytest.mark.full
def test_the_triggers_of_a_copied_log_equal_its_labels(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "tables"
    history = generate_history(tmp_path / "history", *SCENARIOS)
    steps: list[str] = []

    summary = run(
        spark,
        ForensicsOptions(target=f"{target}", log=history.log, ends=history.ends),
        on_progress=lambda text, _step, _steps: steps.append(text),
    )

    store = Store(spark, f"{target}")
    triggers = triggers_in(spark, target)
    assert triggers == history.triggers
    assert summary.table_summary["has_events"]
    assert summary.table_summary["tables"]["rebalances"] >= len(triggers)
    assert summary.incomplete == ()
    assert steps[-1] == "findings"
    assert store.summary()["tables"] == summary.table_summary["tables"]


def test_interrupted_tables_are_not_complete(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, f"{tmp_path}")
    store.complete({"tables": {}})

    store.begin()

    with pytest.raises(NoTables, match="run kohort pipeline forensics again"):
        store.summary()


@pytest.mark.full
def test_a_running_cluster_is_analysed(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    own = cluster.name_group()
    with crowd_of(cluster, 4) as crowd:
        crowd.join()
        crowd.settle()
        crowd.produce(10)
        crowd.read(40)
        crowd.members[0].commit()
        second = crowd.join()
        crowd.settle()
        crowd.leave(second)
        crowd.settle()
        options = ForensicsOptions(
            target=f"{tmp_path}",
            bootstrap_servers=cluster.bootstrap_servers,
            groups=(crowd.group,),
            group_id=own,
        )
        summary = run(spark, options)

    has_events = bool(summary.table_summary["has_events"])
    rows = Store(spark, f"{tmp_path}").read(tables.REBALANCES).orderBy("generation").collect()
    triggers = [row.trigger for row in rows]
    assert triggers[:2] == ["member-joined", "member-joined"]
    # Without events, it is unknown whether a member without commits left or died.
    assert triggers[2] == "member-left" or (triggers[2] == "session-expired" and not has_events)
    assert {row.group_id for row in rows} == {crowd.group}
    assert {row.is_exact for row in rows} == {has_events}
    lag = Store(spark, f"{tmp_path}").read(tables.LAG_STATUS).collect()
    assert {row.lag_records for row in lag} == {0}
