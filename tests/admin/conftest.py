"""One node for the tests of this room; each has topics and groups of its own."""

from collections.abc import Iterator

import pytest

import kohort
from kohort.admin.cluster import Cluster, open_cluster
from tests.client import clusters


@pytest.fixture(scope="package")
def node() -> Iterator[clusters.Cluster]:
    with kohort.Node(settings=clusters.SETTINGS) as started:
        yield clusters.Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture
def cluster(node: clusters.Cluster) -> Iterator[Cluster]:
    with open_cluster(node.bootstrap_servers) as opened:
        yield opened
