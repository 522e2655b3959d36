"""The selector driver over real sockets, with a clock that the test moves."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import kohort
from kohort.protocol.backoff import Backoff
from kohort.protocol.errors import ConnectFailed, Disconnected, RequestTimedOut, UnsupportedByBroker
from kohort.protocol.selector import NetworkClient, Result
from kohort.protocol.sockets import Address, ConnectionSettings
from kohort.types import Millis
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataResponse
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from tests.client import node_cluster
from tests.client.faulty_broker import FaultyBrokers, alter, disconnect, faulty_brokers, no_response

NOW = Millis(1_000)
BACKOFF_MS = Millis(500)
IDLE_MS = Millis(60_000)


@pytest.fixture(scope="module")
def node() -> Iterator[node_cluster.Cluster]:
    with kohort.Node(settings=node_cluster.SETTINGS) as started:
        yield node_cluster.Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture
def broker(node: node_cluster.Cluster) -> Iterator[FaultyBrokers]:
    with faulty_brokers(node.address) as brokers:
        yield brokers


def address_of(broker: FaultyBrokers) -> Address:
    return "127.0.0.1", int(broker.bootstrap_servers.rpartition(":")[2])


class Client:
    def __init__(self, *addresses: Address) -> None:
        self.failures: list[tuple[Address, str]] = []
        self.network = NetworkClient(
            ConnectionSettings(client_id="test", setup_timeout_ms=Millis(2_000)),
            max_idle_ms=IDLE_MS,
            reconnect_backoff=Backoff(BACKOFF_MS, BACKOFF_MS, lambda: 0.5),
            addresses=lambda: list(addresses),
            any_lane="lane",
            on_failure=lambda address, reason: self.failures.append((address, reason)),
        )

    def send(self, context: str, now: int = NOW, body: object = None) -> None:
        self.network.send(
            body or MetadataRequest(topics=()),
            Millis(now),
            address=None,
            lane="lane",
            timeout_ms=Millis(5_000),
            context=context,
        )

    def results(self, now: int = NOW) -> list[Result]:
        """The results within some seconds of real time; the clock of the test does not move."""
        give_up_at = time.monotonic() + 5
        while time.monotonic() < give_up_at:
            ready = self.network.wait(Millis(50))
            results = self.network.process(ready, Millis(now))
            if results:
                return results
        return []


@contextmanager
def connected_to(*addresses: Address) -> Iterator[Client]:
    client = Client(*addresses)
    try:
        yield client
    finally:
        client.network.close()


def test_a_request_to_any_broker_is_answered(broker: FaultyBrokers) -> None:
    with connected_to(address_of(broker)) as client:
        client.send("first")

        ((context, response),) = client.results()

    assert context == "first"
    assert isinstance(response, MetadataResponse)


def test_a_broker_that_closed_the_connection_is_left_alone_for_a_while(
    broker: FaultyBrokers,
) -> None:
    broker.play(MetadataRequest, disconnect)
    with connected_to(address_of(broker)) as client:
        client.send("first")
        ((_, error),) = client.results()
        assert isinstance(error, Disconnected)
        assert client.failures == [(address_of(broker), "the broker closed the connection")]

        client.send("second")
        assert client.network.next_deadline() == NOW + BACKOFF_MS
        assert client.network.process([], NOW) == []
        ((context, response),) = client.results(NOW + BACKOFF_MS)

    assert context == "second"
    assert isinstance(response, MetadataResponse)


def test_a_request_that_times_out_fails_those_behind_it(broker: FaultyBrokers) -> None:
    broker.play(MetadataRequest, no_response, no_response)
    with connected_to(address_of(broker)) as client:
        client.send("late")
        client.send("behind", NOW + 100)
        while not broker.asked(MetadataRequest):
            client.network.process(client.network.wait(Millis(50)), NOW)

        results = dict(client.network.process([], Millis(NOW + 5_000)))

    assert isinstance(results["late"], RequestTimedOut)
    assert isinstance(results["behind"], Disconnected)


def test_a_port_without_a_listener_is_unreachable() -> None:
    with connected_to(("127.0.0.1", 1)) as client:
        client.send("first")

        ((_, error),) = client.results()

    assert isinstance(error, ConnectFailed)
    assert "Connection refused" in str(error)


def test_a_server_that_never_answers_is_unreachable_in_time() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        connected_to(silent.getsockname()) as client,
    ):
        client.send("first")
        client.network.process(client.network.wait(Millis(200)), NOW)

        ((_, error),) = client.network.process([], Millis(NOW + 2_000))

    assert isinstance(error, ConnectFailed)
    assert str(error) == "version negotiation failed: timed out"


def test_an_api_that_the_broker_lacks_fails_alone(broker: FaultyBrokers) -> None:
    def forget(answer: Any) -> Any:
        kept = tuple(each for each in answer.api_keys if each.api_key != 16)
        return replace(answer, api_keys=kept)

    broker.always(ApiVersionsRequest, alter(forget))
    with connected_to(address_of(broker)) as client:
        client.send("unsupported", body=ListGroupsRequest())
        client.send("supported")
        results = dict(client.results())
        while len(results) < 2:
            results |= dict(client.results())

    assert isinstance(results["unsupported"], UnsupportedByBroker)
    assert isinstance(results["supported"], MetadataResponse)


def test_an_idle_connection_is_closed(broker: FaultyBrokers) -> None:
    with connected_to(address_of(broker)) as client:
        client.send("first")
        assert client.results()
        assert client.network.next_deadline() == NOW + IDLE_MS

        client.network.process([], Millis(NOW + IDLE_MS))

        assert client.network.next_deadline() is None
        assert client.failures == []


def test_another_thread_ends_the_wait() -> None:
    with connected_to(("127.0.0.1", 1)) as client:
        threading.Timer(0.05, client.network.wake).start()

        assert client.network.wait(Millis(20_000))
