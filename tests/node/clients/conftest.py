"""Two nodes, one within this process and one beside it. The contract asks them with libraries."""

from collections.abc import Iterator

import pytest

import kohort
from tests.contract.brokers import IN_PROCESS, KOHORT_SETTINGS, SERVED
from tests.contract.cluster import Cluster
from tests.node.serving import Served


@pytest.fixture(scope="package", params=[IN_PROCESS, SERVED])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    if request.param == IN_PROCESS:
        with kohort.Node(settings=KOHORT_SETTINGS) as node:
            yield Cluster(name=request.param, bootstrap_servers=node.bootstrap_servers)
        return
    with Served(tmp_path_factory.mktemp("clients"), KOHORT_SETTINGS) as served:
        yield Cluster(name=request.param, bootstrap_servers=served.bootstrap_servers)
        assert served.stop() == 0
        assert "Traceback" not in served.journal
