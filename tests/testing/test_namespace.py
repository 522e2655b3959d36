"""Unique names on a shared cluster, and what is left of them after a test."""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import kohort
from kohort.admin.errors import AdminError
from kohort.testing.namespace import Namespace
from kohort.testing.real_cluster import NotOnRealKafka, RealCluster
from tests.apache.shared import SharedKafka
from tests.wait import wait_until


@pytest.fixture(scope="module")
def cluster() -> Iterator[kohort.Node]:
    with kohort.Node() as cluster:
        yield cluster


def join(cluster: Namespace, group: str, topic: str) -> kohort.Consumer:
    consumer = kohort.Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=group,
        client_id="worker",
        allow_auto_create_topics=False,
    )
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(timeout_ms=10) or consumer.assignment(), 30)
    return consumer


def test_names_are_unique_and_show_the_test(cluster: kohort.Node) -> None:
    label = "gw0 test_orders[a.b_c]"
    with Namespace(cluster, label) as first, Namespace(cluster, label) as second:
        names = [first.topic("orders"), first.topic("orders"), second.topic("orders")]
        names += [first.group(), first.group(), second.group("billing")]

        assert len({*names}) == 6
        assert re.fullmatch("gw0-test-orders-a-b-c-[0-9a-f]{8}-orders", names[0])
        assert re.fullmatch("gw0-test-orders-a-b-c-[0-9a-f]{8}-orders-2", names[1])


def test_a_long_or_strange_label_makes_valid_names(cluster: kohort.Node) -> None:
    for label in ("x" * 500, "тест", ""):
        with Namespace(cluster, label) as namespace:
            topic = namespace.topic("заказы")

            assert topic in cluster.topics()


def test_helpers_take_names_of_the_cluster(cluster: kohort.Node) -> None:
    with Namespace(cluster) as namespace:
        topic = namespace.topic(partitions=2, settings={"max.message.bytes": 1000})
        group = namespace.group()

        namespace.produce(topic, ["1", "2"])
        namespace.commit(group, {(topic, 0): 1})

        assert [record.value for record in cluster.records(topic)] == [b"1", b"2"]
        assert cluster.committed(group) == {(topic, 0): 1}


def test_topics_and_groups_are_removed(cluster: kohort.Node) -> None:
    with Namespace(cluster) as namespace:
        topic, group = namespace.topic(), namespace.group()
        namespace.group("never-used")
        namespace.commit(group, {(topic, 0): 0})

    assert cluster.topics() == {}
    assert group not in cluster.groups()


def test_a_topic_that_the_test_has_deleted_is_no_failure(
    cluster: kohort.Node, caplog: pytest.LogCaptureFixture
) -> None:
    with Namespace(cluster) as namespace:
        namespace.delete_topic(namespace.topic())

    assert caplog.records == []


def test_a_group_whose_member_is_still_connected_is_removed(cluster: kohort.Node) -> None:
    with ExitStack() as stack:
        with Namespace(cluster) as namespace:
            group = namespace.group()
            stack.callback(join(namespace, group, namespace.topic()).close)

        assert group not in cluster.groups()


def test_a_cluster_that_is_gone_is_logged_and_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    with kohort.Node() as cluster:
        address = cluster.bootstrap_servers
        real = RealCluster(address)
        namespace = Namespace(real)
        topic = namespace.topic()
        namespace.group()

    namespace.close()
    real.disconnect()

    assert [record.name for record in caplog.records] == ["kohort.testing"] * 2
    assert address in caplog.messages[0]
    with pytest.raises(AdminError, match=re.escape(address)):
        real.records(topic)


def test_rebalances_are_those_since_the_namespace_was_made(cluster: kohort.Node) -> None:
    with Namespace(cluster) as earlier:
        join(earlier, earlier.group(), earlier.topic()).close()

    with Namespace(cluster) as namespace:
        group = namespace.group()
        assert namespace.all_rebalances() == {}
        join(namespace, group, namespace.topic()).close()

        assert [*namespace.all_rebalances()] == [group]
        assert [each.ending for each in namespace.rebalances(group)] == ["stable", "empty"]


def test_a_real_kafka_has_the_same_helpers(apache_kafka: SharedKafka) -> None:
    with ExitStack() as stack:
        real = RealCluster(apache_kafka.bootstrap_servers)
        stack.callback(real.disconnect)
        with Namespace(real, "test_real") as namespace:
            topic, group = namespace.topic("orders", partitions=3), namespace.group()
            assert sorted(namespace.produce(topic, ["1", "2", "3", "4"])) == [0, 0, 0, 1]
            assert len(namespace.records(topic)) == 4
            namespace.commit(group, {(topic, 0): 1})
            assert namespace.committed(group) == {(topic, 0): 1}
            assert namespace.lag(group).total == 1

            joined = namespace.group("members")
            stack.callback(join(namespace, joined, topic).close)
            (member,) = namespace.members(joined)

        assert (member.client_id, len(member.partitions)) == ("worker", 3)
        assert topic not in real.topics()
        assert group not in real.groups()


def test_a_real_kafka_has_no_faults_no_clock_and_no_recorded_rebalances(
    apache_kafka: SharedKafka,
) -> None:
    real = RealCluster(apache_kafka.bootstrap_servers)

    with pytest.raises(NotOnRealKafka, match="faults"):
        _ = real.faults
    with pytest.raises(NotOnRealKafka, match="clock"):
        _ = real.clock
    with pytest.raises(NotOnRealKafka, match="rebalances"):
        Namespace(real).rebalances("billing")
    real.disconnect()


def test_a_real_kafka_is_neither_stopped_nor_started(apache_kafka: SharedKafka) -> None:
    namespace = Namespace(RealCluster(apache_kafka.bootstrap_servers))

    for action in (namespace.start, namespace.kill, namespace.restart):
        with pytest.raises(NotOnRealKafka, match="neither stopped nor started"):
            action()
    namespace.node.disconnect()


def test_a_test_restarts_and_kills_the_node_of_its_names() -> None:
    with kohort.Node() as node, Namespace(node) as namespace:
        topic = namespace.topic()

        namespace.restart()
        assert namespace.produce(topic, ["1"]) == [0]
        namespace.kill()
        assert not node.is_running
        assert namespace.start() is namespace

        assert [record.value for record in namespace.records(topic)] == [b"1"]
