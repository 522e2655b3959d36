"""The same waits over Kafka's protocol, on Kohort and on Apache Kafka."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from kohort.admin import topics
from kohort.admin.cluster_connection import Cluster, open_cluster
from kohort.testing.polled_waits import PolledWaits
from kohort.testing.waits import WaitTimeout
from kohort.types import Topic
from tests.apache.shared import SharedKafka
from tests.cli.cluster_setup import commit, join, partition_of, write
from tests.testing.wait_setup import PARTITIONS, WaitNode, consumers

LONG_S = 30.0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[WaitNode]:
    started = WaitNode(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def cluster(node: WaitNode) -> Iterator[Cluster]:
    with open_cluster(node.bootstrap_servers) as opened:
        yield opened


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_members_and_lag_are_polled_for(node: WaitNode, cluster: Cluster, assignor: str) -> None:
    write(node.bootstrap_servers, {("orders", 0): 3})

    with consumers(node.bootstrap_servers, "a", "b", assignor=assignor):
        found = PolledWaits(cluster).wait_for(
            "billing", members=2, stable=True, lag=0, timeout=LONG_S
        )

    assert (found.assigned, found.committed()[partition_of("orders", 0)]) == (PARTITIONS, 3)


def test_timeout_has_the_same_text_as_that_of_a_node(node: WaitNode, cluster: Cluster) -> None:
    with consumers(node.bootstrap_servers, "a"):
        polled = PolledWaits(cluster)
        polled.wait_for("billing", stable=True, timeout=LONG_S)
        with pytest.raises(WaitTimeout) as caught:
            polled.wait_for("billing", members=3, timeout=0)

    head, title, *events = str(caught.value).splitlines()
    assert head == "not within 0 ms: group billing has 1 member, 3 were expected"
    assert title == "last events of group billing:"
    assert events[0].endswith("billing  member-id-issued  a at 127.0.0.1")


def test_rebalance_of_a_kohort_node_has_its_cause(node: WaitNode, cluster: Cluster) -> None:
    with consumers(node.bootstrap_servers, "a"):
        ended = PolledWaits(cluster).wait_for_rebalance("billing", after=0, timeout=LONG_S)

    assert (ended.generation, ended.trigger, ended.is_exact) == (1, "member-joined", True)


def test_commits_are_polled_for(node: WaitNode, cluster: Cluster) -> None:
    polled = PolledWaits(cluster)
    commit(node.bootstrap_servers, "billing", {("orders", 0): 3})

    found = polled.wait_for_commit("billing", topic="orders", partition=0, offset=2, timeout=0)

    assert found.offsets == {partition_of("orders", 0): 3}
    with pytest.raises(WaitTimeout, match="group billing has not committed an offset since"):
        polled.wait_for_commit("billing", timeout=0.01)


def test_invalid_arguments_are_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="lag=-1 is invalid"):
        PolledWaits(cluster).wait_for("billing", lag=-1)


def test_waits_work_on_apache_kafka(apache_kafka: SharedKafka) -> None:
    bootstrap, name = apache_kafka.bootstrap_servers, f"waits-{uuid4()}"
    with open_cluster(bootstrap) as cluster, ThreadPoolExecutor(1) as pool:
        topics.create_topic(cluster, Topic(name), partitions=2)
        polled = PolledWaits(cluster)
        with join(bootstrap, "a", group=name, topic=name) as consumer:
            waiting = pool.submit(
                polled.wait_for, name, members=1, stable=True, assigned=2, timeout=60
            )
            while not waiting.done():
                consumer.poll(timeout_ms=50)
            found = waiting.result()
            ended = polled.wait_for_rebalance(name, after=0, timeout=60)
            consumer.commit({partition_of(name, 1): 0})
            committed = polled.wait_for_commit(name, topic=name, partition=1, offset=0, timeout=60)

        assert (found.state, found.lag) == ("Stable", 0)
        assert (ended.generation >= 1, ended.is_exact) == (True, False)
        assert committed.offsets == {partition_of(name, 1): 0}
