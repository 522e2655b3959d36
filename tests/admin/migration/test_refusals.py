"""Reasons why a migration cannot start, reported before anything is changed."""

from pathlib import Path
from typing import Any

import pytest

import kohort
from kohort.admin import topics
from kohort.admin.cluster_connection import open_cluster
from kohort.admin.errors import InvalidRequest
from kohort.admin.migration.migration_state import open_state
from kohort.admin.migration.migration_types import MigrationRefused, TopicStep
from kohort.types import GroupId, Topic
from tests.admin.migration.cluster_pair import NODE, ClusterPair, alter, commit, create, read_all
from tests.client.node_cluster import Cluster, at


def refusal_of(pair: ClusterPair, **options: Any) -> str:
    """The reasons; the plan and the migration report the same."""
    has_state = pair.state.exists()
    plan = pair.plan(**options)
    with pytest.raises(MigrationRefused) as refused:
        pair.migrate(**options)
    assert refused.value.reasons == plan.refusals
    assert pair.state.exists() == has_state
    return "; ".join(plan.refusals)


def test_source_and_target_must_differ(node_pair: ClusterPair) -> None:
    pair = ClusterPair(source=node_pair.source, target=node_pair.source, state=node_pair.state)

    assert "the same cluster" in refusal_of(pair)


def test_a_topic_with_fewer_partitions_is_rejected(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source, partitions=3)
    mixed_pair.target.create_topic(2, topic)

    assert "2 partitions in the target, 3 in the source" in refusal_of(mixed_pair, topics=(topic,))
    assert "2 partitions" in refusal_of(mixed_pair, topics=(topic,), is_into_existing=True)


def test_a_topic_with_records_is_rejected_without_into_existing(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.target.create_topic(1, topic)
    node_pair.target.produce(topic, 1)

    assert "is not empty" in refusal_of(node_pair)
    assert node_pair.plan(is_into_existing=True).topics[0].step is TopicStep.ADD


def test_a_topic_with_another_config_is_rejected(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.target.create_topic(1, topic)
    alter(node_pair.target, topic, {"cleanup.policy": "compact"})

    assert "a different cleanup.policy" in refusal_of(node_pair)


def test_an_equal_empty_topic_is_accepted(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 3)
    node_pair.target.create_topic(1, topic)

    assert node_pair.migrate().copied_now == 3


def test_missing_topics_and_groups_are_rejected(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    commit(node_pair.source, "billing", {at(topic): 0})
    options: dict[str, Any] = {"topics": (Topic("nothing"),), "groups": (GroupId("missing-group"),)}

    reasons = refusal_of(node_pair, **options)

    assert "there is no topic 'nothing' in the source" in reasons
    assert "there is no group 'missing-group' in the source" in reasons
    assert "internal" in refusal_of(node_pair, topics=(Topic("__consumer_offsets"),))


def test_a_topic_that_was_deleted_in_the_target_is_rejected(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 3)
    node_pair.migrate()

    with open_cluster(node_pair.target.bootstrap_servers) as cluster:
        topics.delete_topic(cluster, topic)
        gone = refusal_of(node_pair)
        topics.create_topic(cluster, topic, partitions=1)

    assert "was deleted in the target" in gone
    assert "is not the one that was started" in refusal_of(node_pair)


def test_the_state_file_of_another_migration_is_rejected(node_pair: ClusterPair) -> None:
    create(node_pair.source)
    node_pair.migrate()
    with kohort.Node(settings=NODE) as node:
        other = Cluster(bootstrap_servers=node.bootstrap_servers)
        pair = ClusterPair(source=node_pair.source, target=other, state=node_pair.state)

        assert "the state file belongs to another target cluster" in refusal_of(pair)


def test_a_file_that_is_not_a_state_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("some text " * 100, "utf-8")

    with pytest.raises(InvalidRequest, match="is not a migration state file"), open_state(path):
        pass


def test_a_state_file_is_used_by_one_migration_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    with (
        open_state(path),
        pytest.raises(InvalidRequest, match="in use by another migration"),
        open_state(path),
    ):
        pass


def test_a_group_with_members_in_the_target_is_reported_and_skipped(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 5)
    for group in ("busy", "calm"):
        commit(node_pair.source, group, {at(topic): 3})
    node_pair.target.create_topic(1, topic)
    with node_pair.target.consumer(group_id="busy", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(20)

        summary = node_pair.migrate()

    assert ["busy" in failure for failure in summary.failures] == [True]
    assert [each.group_id for each in summary.groups] == ["calm"]
    (copied,) = read_all(node_pair.target, topic, 1)
    assert len(copied) == 5


def test_a_group_with_members_in_the_source_is_moved_with_a_warning(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 5)
    with node_pair.source.consumer(group_id="live") as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(20)
        consumer.commit({at(topic): 2})

        summary = node_pair.migrate()

    assert any("has members in the source" in warning for warning in summary.warnings)
    assert [each.offsets[0].target for each in summary.groups] == [2]
