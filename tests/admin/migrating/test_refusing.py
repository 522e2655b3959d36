"""What forbids a migration is said before anything is changed."""

from pathlib import Path
from typing import Any

import pytest

import kohort
from kohort.admin import topics
from kohort.admin.cluster import open_cluster
from kohort.admin.errors import WrongWish
from kohort.admin.migrating.state import open_state
from kohort.admin.migrating.wish import MigrationRefused, TopicStep
from kohort.types import GroupId, Topic
from tests.admin.migrating.migrations import NODE, Pair, alter, commit, create, read_all
from tests.client.clusters import Cluster, at


def refusal_of(pair: Pair, **wish: Any) -> str:
    """The reasons; the plan and the migration give the same."""
    has_state = pair.state.exists()
    plan = pair.plan(**wish)
    with pytest.raises(MigrationRefused) as refused:
        pair.migrate(**wish)
    assert refused.value.reasons == plan.refusals
    assert pair.state.exists() == has_state
    return "; ".join(plan.refusals)


def test_a_cluster_cannot_move_to_itself(node_pair: Pair) -> None:
    pair = Pair(a=node_pair.a, b=node_pair.a, state=node_pair.state)

    assert "one cluster" in refusal_of(pair)


def test_a_topic_with_other_partitions_is_refused(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a, partitions=3)
    mixed_pair.b.create_topic(2, topic)

    assert "2 partitions in B, and 3 in A" in refusal_of(mixed_pair, topics=(topic,))
    assert "2 partitions" in refusal_of(mixed_pair, topics=(topic,), is_into_existing=True)


def test_a_topic_with_records_is_refused_unless_it_may_be_added_to(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.b.create_topic(1, topic)
    node_pair.b.produce(topic, 1)

    assert "is not empty" in refusal_of(node_pair)
    assert node_pair.plan(is_into_existing=True).topics[0].step is TopicStep.ADD


def test_a_topic_with_other_settings_is_refused(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.b.create_topic(1, topic)
    alter(node_pair.b, topic, {"cleanup.policy": "compact"})

    assert "another cleanup.policy" in refusal_of(node_pair)


def test_an_empty_topic_that_is_the_same_is_taken(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 3)
    node_pair.b.create_topic(1, topic)

    assert node_pair.migrate().copied_now == 3


def test_names_that_are_not_there_are_refused(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    commit(node_pair.a, "billing", {at(topic): 0})
    wish: dict[str, Any] = {"topics": (Topic("nothing"),), "groups": (GroupId("nobody"),)}

    reasons = refusal_of(node_pair, **wish)

    assert "there is no topic 'nothing' in A" in reasons
    assert "there is no group 'nobody' in A" in reasons
    assert "internal" in refusal_of(node_pair, topics=(Topic("__consumer_offsets"),))


def test_a_topic_that_was_made_anew_in_b_is_refused(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 3)
    node_pair.migrate()

    with open_cluster(node_pair.b.bootstrap_servers) as cluster:
        topics.delete_topic(cluster, topic)
        gone = refusal_of(node_pair)
        topics.create_topic(cluster, topic, partitions=1)

    assert "is gone in B" in gone
    assert "not the one that was begun" in refusal_of(node_pair)


def test_the_state_of_another_migration_is_refused(node_pair: Pair) -> None:
    create(node_pair.a)
    node_pair.migrate()
    with kohort.Node(settings=NODE) as node:
        other = Cluster(bootstrap_servers=node.bootstrap_servers)
        pair = Pair(a=node_pair.a, b=other, state=node_pair.state)

        assert "the state is that of a migration to cluster" in refusal_of(pair)


def test_a_file_that_is_no_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100, "utf-8")

    with pytest.raises(WrongWish, match="is not the state of a migration"), open_state(path):
        pass


def test_two_migrations_do_not_share_a_state(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    with (
        open_state(path),
        pytest.raises(WrongWish, match="another migration goes on"),
        open_state(path),
    ):
        pass


def test_a_group_with_members_in_b_is_told_and_the_rest_is_done(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 5)
    for group in ("busy", "calm"):
        commit(node_pair.a, group, {at(topic): 3})
    node_pair.b.create_topic(1, topic)
    with node_pair.b.consumer(group_id="busy", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(20)

        summary = node_pair.migrate()

    assert ["busy" in failure for failure in summary.failures] == [True]
    assert [each.group_id for each in summary.groups] == ["calm"]
    (arrived,) = read_all(node_pair.b, topic, 1)
    assert len(arrived) == 5


def test_a_group_with_members_in_a_is_moved_with_a_warning(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 5)
    with node_pair.a.consumer(group_id="live") as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(20)
        consumer.commit({at(topic): 2})

        summary = node_pair.migrate()

    assert any("has members in A" in warning for warning in summary.warnings)
    assert [each.offsets[0].target for each in summary.groups] == [2]
