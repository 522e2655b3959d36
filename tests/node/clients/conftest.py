"""Two nodes, one within this process and one beside it, and three libraries to ask them with."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import kohort
from kohort.node.broker import Address
from kohort.types import Topic
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.node.calling import Caller
from tests.node.clients.aio import Aio
from tests.node.clients.kafka_python import KafkaPython
from tests.node.clients.library import Library
from tests.node.clients.librdkafka import Librdkafka
from tests.node.serving import Served

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
}

LIBRARIES: tuple[Library, ...] = (Librdkafka(), KafkaPython(), Aio())

_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    bootstrap_servers: str

    def create_topic(self, partitions: int = 1) -> str:
        """A new one under a name of its own."""
        name = f"topic-{next(_NUMBERS)}"
        topic = CreatableTopic(name=Topic(name), num_partitions=partitions, replication_factor=1)
        with Caller(self.address) as caller:
            (result,) = caller.ask(CreateTopicsRequest(topics=(topic,)), 7).topics
        assert result.error_code == 0, result
        return name

    def name_group(self) -> str:
        return f"group-{next(_NUMBERS)}"

    @property
    def address(self) -> Address:
        host, _, port = self.bootstrap_servers.rpartition(":")
        return Address(host=host, port=int(port))


@pytest.fixture(scope="session", params=["embedded", "served"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    if request.param == "embedded":
        with kohort.Node(settings=SETTINGS) as node:
            yield Cluster(bootstrap_servers=node.bootstrap_servers)
        return
    with Served(tmp_path_factory.mktemp("clients"), SETTINGS) as served:
        yield Cluster(bootstrap_servers=served.bootstrap_servers)
        assert served.stop() == 0
        assert "Traceback" not in served.journal


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.name)
def library(request: pytest.FixtureRequest) -> Library:
    found: Library = request.param
    return found
