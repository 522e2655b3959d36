"""Two nodes: one embedded in this process and one as a separate process."""

from collections.abc import Iterator

import pytest

import kohort
from tests.contract.brokers import IN_PROCESS, KOHORT_SETTINGS, SERVED
from tests.contract.cluster import Cluster
from tests.node.served_node import ServedNode


@pytest.fixture(scope="package", params=[IN_PROCESS, SERVED])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    if request.param == IN_PROCESS:
        with kohort.Node(settings=KOHORT_SETTINGS, like_kafka=True) as node:
            yield Cluster(name=request.param, bootstrap_servers=node.bootstrap_servers)
        return
    with ServedNode(tmp_path_factory.mktemp("clients"), KOHORT_SETTINGS) as served:
        yield Cluster(name=request.param, bootstrap_servers=served.bootstrap_servers)
        assert served.stop() == 0
        assert "Traceback" not in served.log
