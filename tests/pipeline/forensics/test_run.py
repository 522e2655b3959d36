"""Whole runs: from a copied log and from clusters that live, to tables that explain themselves."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.run import run
from kohort.pipeline.forensics.store import NoTables, Store
from kohort.pipeline.forensics.wish import ForensicsWish
from tests.client.clusters import Cluster
from tests.client.crowds import crowd_of
from tests.pipeline.forensics.commanding import make_corpus, triggers_in

KINDS = ("deploy-in-a-row", "crash-loop", "steady")


def test_a_copied_log_is_explained_as_it_happened(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "tables"
    corpus = make_corpus(tmp_path / "corpus", *KINDS)
    steps: list[str] = []

    summary = run(
        spark,
        ForensicsWish(target=f"{target}", log=corpus.log, ends=corpus.ends),
        watch=lambda what, _step, _steps: steps.append(what),
    )

    store = Store(spark, f"{target}")
    told = triggers_in(spark, target)
    assert told == corpus.triggers
    assert summary.figures["has_events"]
    assert summary.figures["tables"]["rebalances"] >= len(told)
    assert summary.torn == ()
    assert steps[-1] == "findings"
    assert store.summary()["tables"] == summary.figures["tables"]


def test_tables_that_were_cut_off_are_not_taken_for_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark, f"{tmp_path}")
    store.complete({"tables": {}})

    store.begin()

    with pytest.raises(NoTables, match="run kohort pipeline forensics again"):
        store.summary()


def test_a_cluster_is_looked_at_as_it_lives(
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
        wish = ForensicsWish(
            target=f"{tmp_path}",
            bootstrap_servers=cluster.bootstrap_servers,
            groups=(crowd.group,),
            group_id=own,
        )
        summary = run(spark, wish)

    has_events = bool(summary.figures["has_events"])
    rows = Store(spark, f"{tmp_path}").read(tables.REBALANCES).orderBy("generation").collect()
    triggers = [row.trigger for row in rows]
    assert triggers[:2] == ["member-joined", "member-joined"]
    # Without events, a member that never committed may have left or died: nobody can tell.
    assert triggers[2] == "member-left" or (triggers[2] == "session-expired" and not has_events)
    assert {row.group_id for row in rows} == {crowd.group}
    assert {row.is_exact for row in rows} == {has_events}
    lag = Store(spark, f"{tmp_path}").read(tables.LAG_STATUS).collect()
    assert {row.lag_records for row in lag} == {0}
