"""Kafka's own tools, and two clusters to use them on: ours, and the one they were written for.

A test here passes on both, so it says what Kafka does and that Kohort does it too.
"""

from collections.abc import Iterator

import pytest

from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.running import Tools
from tests.node.serving import Served

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.num.partitions": 4,
    "log.retention.check.interval.ms": 200,
}


@pytest.fixture(scope="package")
def tools() -> Iterator[Tools]:
    try:
        tools = Tools()
    except Unavailable as reason:
        skip(reason)
    with tools:
        yield tools


@pytest.fixture(scope="package")
def kohort_cluster(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Served(tmp_path_factory.mktemp("tools"), SETTINGS) as served:
        yield Cluster(name="kohort", bootstrap_servers=served.bootstrap_servers, tools=tools)
        assert served.stop() == 0
        assert "Traceback" not in served.journal


@pytest.fixture(scope="package")
def kafka_cluster(tools: Tools, apache_kafka: Kafka) -> Cluster:
    return Cluster(name="kafka", bootstrap_servers=apache_kafka.bootstrap_servers, tools=tools)


@pytest.fixture(params=["kohort", "kafka"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return found
