"""Kafka's command-line tools, and two clusters for them: Kohort and Apache Kafka.

Tests pass on both. On Apache Kafka they only verify the expectations, so these are `full`.
"""

from collections.abc import Iterator

import pytest

from tests.apache.shared import SharedKafka
from tests.apache.unavailable import Unavailable, skip
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.tool_runner import Tools
from tests.node.served_node import ServedNode

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
    with ServedNode(tmp_path_factory.mktemp("tools"), SETTINGS) as served:
        yield Cluster(name="kohort", bootstrap_servers=served.bootstrap_servers, tools=tools)
        assert served.stop() == 0
        assert "Traceback" not in served.log


@pytest.fixture(scope="package")
def kafka_cluster(tools: Tools, apache_kafka: SharedKafka) -> Cluster:
    return Cluster(name="kafka", bootstrap_servers=apache_kafka.bootstrap_servers, tools=tools)


@pytest.fixture(params=["kohort", pytest.param("kafka", marks=pytest.mark.full)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return found
