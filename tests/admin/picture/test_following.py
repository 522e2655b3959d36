"""The picture of a real cluster, as it changes: a node's, and Apache Kafka's."""

from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

import kohort
from kohort.admin.cluster import open_cluster
from kohort.admin.groups import delete_groups
from kohort.admin.picture import Following, GroupView, follow, now_ms
from kohort.types import GroupId, Millis
from tests.apache.cluster import Kafka
from tests.client.clusters import SETTINGS, Cluster, at, read
from tests.waiting import wait_until

LONG_S = 30.0


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with kohort.Node(settings=SETTINGS) as started:
        yield Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture
def following(node: Cluster) -> Iterator[Following]:
    with open_cluster(node.bootstrap_servers) as cluster, follow(cluster, poll_s=0.1) as made:
        yield made


def see(following: Following, group: str) -> GroupView | None:
    with following.look() as picture:
        return picture.find_group(GroupId(group), now_ms())


def wait_for(
    following: Following, group: str, condition: Callable[[GroupView], object]
) -> GroupView:
    def find() -> GroupView | None:
        view = see(following, group)
        return view if view is not None and condition(view) else None

    found = wait_until(find, LONG_S, f"group {group}")
    assert found is not None
    return found


def _is_exact(view: GroupView) -> bool:
    return all(each.is_exact and each.ended_ms for each in view.rebalances)


def test_a_join_is_seen_with_who_began_it_and_what_it_holds(
    node: Cluster, following: Following
) -> None:
    topic, group = node.create_topic(2), node.name_group()
    node.produce(topic, 5)

    with node.consumer(group_id=group, client_id="till-1") as consumer:
        consumer.subscribe([topic])
        read(consumer, 5)
        consumer.commit()
        view = wait_for(
            following,
            group,
            lambda each: each.row.lag == 0 and each.rebalances and _is_exact(each),
        )

    (member,) = view.members
    assert member.party.client_id == "till-1"
    assert member.holds == (at(topic, 0), at(topic, 1))
    (rebalance,) = view.rebalances
    assert (rebalance.is_exact, rebalance.trigger, rebalance.ending) == (
        True,
        "member-joined",
        "stable",
    )
    assert {each.partition for each in view.stretches} == {at(topic, 0), at(topic, 1)}


def test_whoever_waits_is_told_of_a_change(node: Cluster, following: Following) -> None:
    topic, group = node.create_topic(), node.name_group()
    wait_until(lambda: following.health().share_read == 1.0, LONG_S, "the past to be read")
    seen = following.version

    with node.consumer(group_id=group) as consumer:
        consumer.commit({at(topic): 3})
        assert following.wait_for_change(seen, timeout_s=LONG_S) != seen

    wait_for(following, group, lambda each: each.readings and each.readings[0].committed == 3)


def test_whoever_waits_in_vain_is_told_nothing_new(following: Following) -> None:
    wait_until(lambda: following.health().share_read == 1.0, LONG_S, "the past to be read")

    def is_quiet() -> bool:
        seen = following.version
        return following.wait_for_change(seen, timeout_s=0.05) == seen

    wait_until(is_quiet, LONG_S, "a moment without changes")


def test_one_who_comes_later_knows_what_was_before(node: Cluster) -> None:
    topic, group = node.create_topic(), node.name_group()
    with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: (consumer.poll(20), consumer.assignment())[1], LONG_S, "a share")
        consumer.commit({at(topic): 7})

    with open_cluster(node.bootstrap_servers) as cluster, follow(cluster) as late:
        view = wait_for(late, group, lambda each: each.row.state == "Empty" and each.readings)

    assert view.readings[0].committed == 7
    assert [each.trigger for each in view.rebalances] == ["member-joined", "member-left"]


def test_a_group_that_is_deleted_is_gone(node: Cluster, following: Following) -> None:
    topic, group = node.create_topic(), node.name_group()
    with node.consumer(group_id=group) as consumer:
        consumer.commit({at(topic): 7})
    wait_for(following, group, lambda each: each.readings)

    with open_cluster(node.bootstrap_servers) as cluster:
        delete_groups(cluster, [GroupId(group)])

    wait_until(lambda: see(following, group) is None, LONG_S, "the group to be gone")


def test_a_cluster_that_goes_away_and_comes_back_is_followed_on(tmp_path: Path) -> None:
    node = kohort.Node(data=tmp_path, settings=SETTINGS).start()
    port = int(node.bootstrap_servers.rpartition(":")[2])
    asked = Cluster(bootstrap_servers=node.bootstrap_servers)
    topic, group = asked.create_topic(), asked.name_group()
    cluster = open_cluster(node.bootstrap_servers, timeout_ms=Millis(2_000))
    with cluster, follow(cluster, poll_s=0.1) as following:
        with asked.consumer(group_id=group) as consumer:
            consumer.commit({at(topic): 1})
        wait_for(following, group, lambda each: each.readings)

        node.stop()
        # While it stops, it may still say that it coordinates nobody any more.
        wait_until(
            lambda: "Connection refused" in following.health().trouble, LONG_S, "it to be missed"
        )
        gone = following.health()
        known = see(following, group)
        node = kohort.Node(data=tmp_path, settings=SETTINGS, port=port).start()
        with asked.consumer(group_id=group) as consumer:
            consumer.commit({at(topic): 2})

        wait_for(following, group, lambda each: each.readings[0].committed == 2)
        wait_until(lambda: following.health().is_reachable, LONG_S, "it to be back")
        node.stop()

    assert not gone.is_reachable
    assert known is not None


def test_on_apache_kafka_it_sees_what_can_be_seen(apache_kafka: Kafka) -> None:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    topic, group = kafka.create_topic(2), kafka.name_group()
    kafka.produce(topic, 4)
    with (
        open_cluster(kafka.bootstrap_servers) as cluster,
        follow(cluster, poll_s=0.2) as following,
        kafka.consumer(group_id=group, client_id="one") as first,
    ):
        first.subscribe([topic])
        read(first, 4)
        first.commit()
        wait_for(following, group, lambda each: each.row.lag == 0 and each.members)
        with kafka.consumer(group_id=group, client_id="two") as second:
            second.subscribe([topic])

            def both() -> bool:
                first.poll(20)
                second.poll(20)
                return len(first.assignment()) == len(second.assignment()) == 1

            wait_until(both, LONG_S, "both to have a share")
            view = wait_for(following, group, lambda each: len(each.members) == 2)

    last = view.rebalances[-1]
    assert not last.is_exact
    assert (last.trigger, last.culprit, last.started_ms) == (None, None, None)
    assert {each.party.client_id for each in last.participants} == {"one", "two"}
    assert len(last.newcomers) == 1


def test_on_apache_kafka_it_sees_groups_of_the_newer_kind(apache_kafka: Kafka) -> None:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    topic, group = kafka.create_topic(2), kafka.name_group()
    kafka.produce(topic, 4)
    modern = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "client.id": "modern",
            "auto.offset.reset": "earliest",
        }
    )
    with open_cluster(kafka.bootstrap_servers) as cluster, follow(cluster, poll_s=0.2) as following:
        modern.subscribe([topic])

        def find() -> GroupView | None:
            modern.poll(0.1)
            view = see(following, group)
            is_whole = view is not None and view.row.state == "Stable" and view.stretches
            return view if is_whole and view is not None and view.members[0].holds else None

        view = wait_until(find, LONG_S, "its share to be seen")
        modern.close()

    assert view is not None
    assert view.row.kind == "consumer"
    (member,) = view.members
    assert (member.party.client_id, member.is_leader) == ("modern", False)
    assert member.holds == (at(topic, 0), at(topic, 1))
    assert {each.partition for each in view.stretches} == {at(topic, 0), at(topic, 1)}
