"""One node and console for all tests of the package; each test has its own topics and groups."""

from collections.abc import Iterator

import pytest

import kohort
from kohort.console.server import Console
from tests.client.node_cluster import SETTINGS, Cluster
from tests.console.http_client import HttpClient


@pytest.fixture(scope="package")
def node() -> Iterator[Cluster]:
    with kohort.Node(settings=SETTINGS) as started:
        yield Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture(scope="package")
def console(node: Cluster) -> Iterator[Console]:
    with Console(node.bootstrap_servers, listen="127.0.0.1:0") as started:
        yield started


@pytest.fixture
def client(console: Console) -> HttpClient:
    return HttpClient(console.url)
