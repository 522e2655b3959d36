"""One node for all tests of this package; each test has its own topics and groups."""

from collections.abc import Iterator

import pytest

import kohort
from kohort.admin.cluster_connection import Cluster, open_cluster
from tests.client import node_cluster


@pytest.fixture(scope="package")
def node() -> Iterator[node_cluster.Cluster]:
    with kohort.Node(settings=node_cluster.SETTINGS) as started:
        yield node_cluster.Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture
def cluster(node: node_cluster.Cluster) -> Iterator[Cluster]:
    with open_cluster(node.bootstrap_servers) as opened:
        yield opened
