"""Two clusters to move things between: two nodes, or a node and an Apache Kafka, either way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.admin.migrating.migrations import NODE, Pair
from tests.apache.cluster import Kafka
from tests.client.clusters import Cluster


@pytest.fixture(scope="package")
def shared_node() -> Iterator[Cluster]:
    """Started once, so topics and groups need names of their own."""
    with kohort.Node(settings=NODE) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


@pytest.fixture(params=["kohort-to-kafka", "kafka-to-kohort"])
def mixed_pair(
    request: pytest.FixtureRequest, shared_node: Cluster, apache_kafka: Kafka, tmp_path: Path
) -> Pair:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    a, b = (shared_node, kafka) if request.param == "kohort-to-kafka" else (kafka, shared_node)
    return Pair(a=a, b=b, state=tmp_path / "state.db")


@pytest.fixture
def node_pair(tmp_path: Path) -> Iterator[Pair]:
    """Two nodes that nobody else uses."""
    with kohort.Node(settings=NODE) as a, kohort.Node(settings=NODE) as b:
        yield Pair(
            a=Cluster(bootstrap_servers=a.bootstrap_servers),
            b=Cluster(bootstrap_servers=b.bootstrap_servers),
            state=tmp_path / "state.db",
        )
