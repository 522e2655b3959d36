"""Source and target clusters: two nodes, or a node and an Apache Kafka in both directions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.admin.migration.cluster_pair import NODE, ClusterPair
from tests.apache.shared import SharedKafka
from tests.client.node_cluster import Cluster


@pytest.fixture(scope="package")
def shared_node() -> Iterator[Cluster]:
    """Shared by all tests, so topics and groups need unique names."""
    with kohort.Node(settings=NODE) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


@pytest.fixture(params=["kohort-to-kafka", "kafka-to-kohort"])
def mixed_pair(
    request: pytest.FixtureRequest, shared_node: Cluster, apache_kafka: SharedKafka, tmp_path: Path
) -> ClusterPair:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    a, b = (shared_node, kafka) if request.param == "kohort-to-kafka" else (kafka, shared_node)
    return ClusterPair(source=a, target=b, state=tmp_path / "state.db")


@pytest.fixture
def node_pair(tmp_path: Path) -> Iterator[ClusterPair]:
    """Two nodes for one test."""
    with kohort.Node(settings=NODE) as a, kohort.Node(settings=NODE) as b:
        yield ClusterPair(
            source=Cluster(bootstrap_servers=a.bootstrap_servers),
            target=Cluster(bootstrap_servers=b.bootstrap_servers),
            state=tmp_path / "state.db",
        )
