"""One node for all tests of the consumer; each test has its own topics and groups.

With KOHORT_CLUSTER=HOST:PORT they use another broker, such as the one that `make kafka` starts with
`--set auto.create.topics.enable=false`.
"""

import os
from collections.abc import Iterator

import pytest

import kohort
from tests.client.node_cluster import SETTINGS, Cluster


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    given = os.environ.get("KOHORT_CLUSTER")
    if given:
        yield Cluster(bootstrap_servers=given)
        return
    with kohort.Node(settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)
