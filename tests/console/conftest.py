"""A node with its console for all tests of the room; each has topics and groups of its own."""

from collections.abc import Iterator

import pytest

import kohort
from kohort.console.server import Console
from tests.client.clusters import SETTINGS, Cluster
from tests.console.visiting import Visitor


@pytest.fixture(scope="package")
def node() -> Iterator[Cluster]:
    with kohort.Node(settings=SETTINGS) as started:
        yield Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture(scope="package")
def console(node: Cluster) -> Iterator[Console]:
    with Console(node.bootstrap_servers, listen="127.0.0.1:0") as started:
        yield started


@pytest.fixture
def visitor(console: Console) -> Visitor:
    return Visitor(console.url)
