"""The monitor on a node and on Apache Kafka."""

from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

import kohort
from kohort.admin.cluster_connection import open_cluster
from kohort.admin.group_monitor import GroupMonitor, GroupView, now_ms, start_monitor
from kohort.admin.groups import delete_groups
from kohort.types import GroupId, Millis
from tests.apache.shared import SharedKafka
from tests.client.node_cluster import SETTINGS, Cluster, at, read
from tests.wait import wait_until

TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with kohort.Node(settings=SETTINGS) as started:
        yield Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture
def monitor(node: Cluster) -> Iterator[GroupMonitor]:
    with (
        open_cluster(node.bootstrap_servers) as cluster,
        start_monitor(cluster, poll_s=0.1) as made,
    ):
        yield made


def find_view(monitor: GroupMonitor, group: str) -> GroupView | None:
    with monitor.locked_state() as state:
        return state.find_group(GroupId(group), now_ms())


def wait_for(
    monitor: GroupMonitor, group: str, condition: Callable[[GroupView], object]
) -> GroupView:
    def find() -> GroupView | None:
        view = find_view(monitor, group)
        return view if view is not None and condition(view) else None

    found = wait_until(find, TIMEOUT_S, f"group {group}")
    assert found is not None
    return found


def _is_exact(view: GroupView) -> bool:
    return all(each.is_exact and each.ended_ms for each in view.rebalances)


def test_a_join_has_a_trigger_and_an_assignment(node: Cluster, monitor: GroupMonitor) -> None:
    topic, group = node.create_topic(2), node.name_group()
    node.produce(topic, 5)

    with node.consumer(group_id=group, client_id="till-1") as consumer:
        consumer.subscribe([topic])
        read(consumer, 5)
        consumer.commit()
        view = wait_for(
            monitor,
            group,
            lambda each: each.row.lag == 0 and each.rebalances and _is_exact(each),
        )

    (member,) = view.members
    assert member.party.client_id == "till-1"
    assert member.partitions == (at(topic, 0), at(topic, 1))
    (rebalance,) = view.rebalances
    assert (rebalance.is_exact, rebalance.trigger, rebalance.ending) == (
        True,
        "member-joined",
        "stable",
    )
    assert {each.partition for each in view.ownership} == {at(topic, 0), at(topic, 1)}


def test_wait_for_change_returns_after_a_change(node: Cluster, monitor: GroupMonitor) -> None:
    topic, group = node.create_topic(), node.name_group()
    wait_until(lambda: monitor.health().share_read == 1.0, TIMEOUT_S, "existing records to be read")
    seen = monitor.version

    with node.consumer(group_id=group) as consumer:
        consumer.commit({at(topic): 3})
        assert monitor.wait_for_change(seen, timeout_s=TIMEOUT_S) != seen

    wait_for(monitor, group, lambda each: each.offsets and each.offsets[0].committed == 3)


def test_wait_for_change_returns_the_same_version_after_the_timeout(monitor: GroupMonitor) -> None:
    wait_until(lambda: monitor.health().share_read == 1.0, TIMEOUT_S, "existing records to be read")

    def is_unchanged() -> bool:
        seen = monitor.version
        return monitor.wait_for_change(seen, timeout_s=0.05) == seen

    wait_until(is_unchanged, TIMEOUT_S, "an interval without changes")


def test_a_monitor_that_starts_later_reads_existing_records(node: Cluster) -> None:
    topic, group = node.create_topic(), node.name_group()
    with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        wait_until(
            lambda: (consumer.poll(20), consumer.assignment())[1], TIMEOUT_S, "an assignment"
        )
        consumer.commit({at(topic): 7})

    with open_cluster(node.bootstrap_servers) as cluster, start_monitor(cluster) as late:
        view = wait_for(late, group, lambda each: each.row.state == "Empty" and each.offsets)

    assert view.offsets[0].committed == 7
    assert [each.trigger for each in view.rebalances] == ["member-joined", "member-left"]


def test_a_deleted_group_is_removed(node: Cluster, monitor: GroupMonitor) -> None:
    topic, group = node.create_topic(), node.name_group()
    with node.consumer(group_id=group) as consumer:
        consumer.commit({at(topic): 7})
    wait_for(monitor, group, lambda each: each.offsets)

    with open_cluster(node.bootstrap_servers) as cluster:
        delete_groups(cluster, [GroupId(group)])

    wait_until(lambda: find_view(monitor, group) is None, TIMEOUT_S, "the group to be removed")


def test_the_monitor_recovers_after_a_restart_of_the_cluster(tmp_path: Path) -> None:
    node = kohort.Node(data=tmp_path, settings=SETTINGS).start()
    port = int(node.bootstrap_servers.rpartition(":")[2])
    asked = Cluster(bootstrap_servers=node.bootstrap_servers)
    topic, group = asked.create_topic(), asked.name_group()
    cluster = open_cluster(node.bootstrap_servers, timeout_ms=Millis(2_000))
    with cluster, start_monitor(cluster, poll_s=0.1) as monitor:
        with asked.consumer(group_id=group) as consumer:
            consumer.commit({at(topic): 1})
        wait_for(monitor, group, lambda each: each.offsets)

        node.stop()
        # While the node stops, it may still answer NOT_COORDINATOR.
        wait_until(
            lambda: "Connection refused" in monitor.health().error,
            TIMEOUT_S,
            "the outage to be noticed",
        )
        gone = monitor.health()
        known = find_view(monitor, group)
        node = kohort.Node(data=tmp_path, settings=SETTINGS, port=port).start()
        with asked.consumer(group_id=group) as consumer:
            consumer.commit({at(topic): 2})

        wait_for(monitor, group, lambda each: each.offsets[0].committed == 2)
        wait_until(lambda: monitor.health().is_reachable, TIMEOUT_S, "the cluster to be reachable")
        node.stop()

    assert not gone.is_reachable
    assert known is not None


def test_classic_groups_on_apache_kafka(apache_kafka: SharedKafka) -> None:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    topic, group = kafka.create_topic(2), kafka.name_group()
    kafka.produce(topic, 4)
    with (
        open_cluster(kafka.bootstrap_servers) as cluster,
        start_monitor(cluster, poll_s=0.2) as monitor,
        kafka.consumer(group_id=group, client_id="one") as first,
    ):
        first.subscribe([topic])
        read(first, 4)
        first.commit()
        wait_for(monitor, group, lambda each: each.row.lag == 0 and each.members)
        with kafka.consumer(group_id=group, client_id="two") as second:
            second.subscribe([topic])

            def both() -> bool:
                first.poll(20)
                second.poll(20)
                return len(first.assignment()) == len(second.assignment()) == 1

            wait_until(both, TIMEOUT_S, "both to have a partition")
            view = wait_for(monitor, group, lambda each: len(each.members) == 2)

    last = view.rebalances[-1]
    assert not last.is_exact
    assert (last.trigger, last.initiator, last.started_ms) == (None, None, None)
    assert {each.party.client_id for each in last.participants} == {"one", "two"}
    assert len(last.newcomers) == 1


def test_consumer_protocol_groups_on_apache_kafka(apache_kafka: SharedKafka) -> None:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    topic, group = kafka.create_topic(2), kafka.name_group()
    kafka.produce(topic, 4)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "client.id": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    with (
        open_cluster(kafka.bootstrap_servers) as cluster,
        start_monitor(cluster, poll_s=0.2) as monitor,
    ):
        consumer.subscribe([topic])

        def find() -> GroupView | None:
            consumer.poll(0.1)
            view = find_view(monitor, group)
            is_whole = view is not None and view.row.state == "Stable" and view.ownership
            return view if is_whole and view is not None and view.members[0].partitions else None

        view = wait_until(find, TIMEOUT_S, "the assignment to appear")
        consumer.close()

    assert view is not None
    assert view.row.kind == "consumer"
    (member,) = view.members
    assert (member.party.client_id, member.is_leader) == ("consumer", False)
    assert member.partitions == (at(topic, 0), at(topic, 1))
    assert {each.partition for each in view.ownership} == {at(topic, 0), at(topic, 1)}
