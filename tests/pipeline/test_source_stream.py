"""Streams: the query is a group member, and committed offsets never lead the checkpoint."""

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from kohort.types import GroupId, Millis
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.client.node_cluster import Cluster, at
from tests.pipeline.stream_setup import (
    TIMEOUT_S,
    Group,
    QueryTable,
    numbered,
    once_each,
    source_progress,
)
from tests.wait import wait_until

on_both = pytest.mark.parametrize("cluster", ["Kohort", "Apache Kafka"], indirect=True)


@on_both
def test_a_query_is_a_group_member_until_it_stops(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(3), Group(cluster, cluster.name_group())
    cluster.produce(topic, numbered(30, 3))
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group.group_id)

    with table.running():
        table.wait_for(once_each(30))
        (member,) = group.describe().members
        assert (group.state, member.client_id) == ("STABLE", "kohort-spark")
        assert member.host.endswith("127.0.0.1")
        assert len(member.assignment.topic_partitions) == 3
        wait_until(lambda: group.committed() == {0: 10, 1: 10, 2: 10}, TIMEOUT_S, "the commit")

    wait_until(lambda: group.state == "EMPTY", TIMEOUT_S, "the query has left")


@on_both
def test_the_last_batch_of_a_run_is_committed(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(2), Group(cluster, cluster.name_group())
    cluster.produce(topic, numbered(50, 2))
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group.group_id)

    table.run(maxOffsetsPerTrigger="20")

    assert table.values() == once_each(50)
    wait_until(lambda: group.state == "EMPTY", TIMEOUT_S, "the query has left")
    assert group.committed() == {0: 25, 1: 25}


@on_both
def test_a_second_run_reads_only_new_records(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group)
    cluster.produce(topic, numbered(10, 2))
    table.run()
    cluster.produce(topic, numbered(10, 2, start=10))

    query = table.run()

    assert table.values() == once_each(20)
    assert sum(each.numInputRows for each in query.recentProgress) == 10


def test_a_new_query_starts_at_the_committed_offsets(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, numbered(10, 1))
    with cluster.consumer(group_id=group) as consumer:
        consumer.commit({at(topic): 7})

    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group)
    table.run()

    assert table.values() == once_each(3, start=7)


def test_the_checkpoint_overrides_older_committed_offsets(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), Group(cluster, cluster.name_group())
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group.group_id)
    cluster.produce(topic, numbered(10, 1))
    table.run()
    wait_until(lambda: group.state == "EMPTY", TIMEOUT_S, "the query has left")
    with cluster.consumer(group_id=group.group_id) as consumer:
        consumer.commit({at(topic): 2})

    query = table.run()

    assert sum(each.numInputRows for each in query.recentProgress) == 0
    wait_until(lambda: group.committed() == {0: 10}, TIMEOUT_S, "the group has caught up")


def test_records_read_by_another_member_are_skipped_and_reported(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), Group(cluster, cluster.name_group())
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group.group_id)
    cluster.produce(topic, numbered(5, 1))
    table.run()
    wait_until(lambda: group.state == "EMPTY", TIMEOUT_S, "the query has left")
    cluster.produce(topic, numbered(5, 1, start=5))
    with cluster.consumer(group_id=group.group_id) as consumer:
        consumer.commit({at(topic): 8})

    query = table.run()

    assert table.values() == once_each(5) + once_each(2, start=8)
    assert source_progress(query)["latestOffset"]["$read_by_others"] == {f"{topic}-0": [5, 8]}


def test_a_query_without_a_group_starts_at_the_log_end(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, numbered(5, 1))
    table = QueryTable(spark, cluster, tmp_path, topic)

    with table.running() as query:
        wait_until((table.checkpoint / "commits" / "0").exists, TIMEOUT_S, "the first batch")
        cluster.produce(topic, numbered(5, 1, start=5))
        table.wait_for(once_each(5, start=5))

    assert query.exception() is None


def test_membership_none_reads_all_partitions_and_only_commits(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(2), Group(cluster, cluster.name_group())
    cluster.produce(topic, numbered(20, 2))
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group.group_id, membership="none")

    with table.running():
        table.wait_for(once_each(20))
        wait_until(lambda: group.committed() == {0: 10, 1: 10}, TIMEOUT_S, "the commit")
        assert group.partition_counts == {}


def test_membership_none_fails_if_the_group_has_members(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, numbered(5, 1))
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group, membership="none")
    with cluster.consumer(group_id=group) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(50) is not None and consumer.assignment(), what="joined")

        with pytest.raises(StreamingQueryException, match="has members"):
            table.run()


def test_max_offsets_per_trigger_limits_batches(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.create_topic(2)
    cluster.produce(topic, numbered(100, 2))
    table = QueryTable(spark, cluster, tmp_path, topic, startingOffsets="earliest")

    query = table.run(maxOffsetsPerTrigger="30")

    sizes = [each.numInputRows for each in query.recentProgress if each.numInputRows]
    assert sizes == [30, 30, 30, 10]


def test_progress_has_the_lag_and_the_state_of_the_group(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, numbered(50, 1))
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group)

    query = table.run(maxOffsetsPerTrigger="20")

    reports = [json.loads(each.json)["sources"][0]["latestOffset"] for each in query.recentProgress]
    assert [each["$lag"][topic]["0"] for each in reports][:3] == [30, 10, 0]
    assert {each[topic]["0"] for each in reports} == {50}
    group_state = reports[2]["$group"]
    assert (group_state["id"], group_state["membership"], group_state["state"]) == (
        group,
        "group",
        "stable",
    )
    assert group_state["committed"] == {topic: {"0": 40}}
    assert group_state["behind"] == {topic: {"0": 10}}


def test_added_partitions_are_read_from_the_log_start(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    table = QueryTable(
        spark,
        cluster,
        tmp_path,
        topic,
        group__id=group,
        auto__offset__reset="latest",
        kafka__metadata__max__age__ms="500",
    )

    with table.running():
        wait_until((table.checkpoint / "commits" / "0").exists, TIMEOUT_S, "the first batch")
        cluster.add_partitions(topic, 2)
        cluster.produce(topic, numbered(10, 2))
        table.wait_for(once_each(10))


def test_lost_records_fail_the_query_unless_fail_on_data_loss_is_false(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group)
    cluster.produce(topic, numbered(5, 1))
    table.run()
    cluster.produce(topic, numbered(5, 1, start=5))
    cluster.delete_before(at(topic), 8)

    with pytest.raises(StreamingQueryException, match="offsets 5 to 7"):
        table.run()
    table.run(failOnDataLoss="false")

    assert table.values() == once_each(5) + once_each(2, start=8)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribe": "nowhere", "group.id": "g"}, "topic nowhere does not exist"),
        ({"subscribe": "nowhere"}, "topic 'nowhere' does not exist"),
        ({"group.id": "g", "auto.offset.reset": "none"}, "auto.offset.reset is none"),
        ({"endingOffsets": "latest", "minPartitions": "0"}, "less than 1"),
    ],
)
def test_a_wrong_query_fails_with_the_reason(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, options: dict[str, str], reason: str
) -> None:
    group = {"group.id": cluster.name_group()} if "group.id" in options else {}
    table = QueryTable(spark, cluster, tmp_path, cluster.create_topic(), **{**options, **group})

    with pytest.raises(Exception, match=reason):
        table.run()


def join_as_connect_worker(cluster: Cluster, group: str) -> None:
    request = JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout_ms=Millis(30_000),
        rebalance_timeout_ms=Millis(30_000),
        protocol_type="connect",
        protocols=(JoinGroupRequestProtocol(name="sessioned", metadata=b""),),
    )

    def has_joined() -> bool:
        joined = cluster.ask(request, 2)
        return bool(joined.error_code == 0)

    wait_until(has_joined, what="the worker has joined")


def test_a_group_with_another_protocol_type_is_refused(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group)

    join_as_connect_worker(cluster, group)

    with pytest.raises(StreamingQueryException, match="INCONSISTENT_GROUP_PROTOCOL"):
        table.run()
