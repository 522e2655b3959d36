"""The blocking driver over real sockets."""

import socket
from collections.abc import Iterator

import pytest

import kohort
from kohort.protocol.blocking_connection import BlockingConnection, monotonic_ms
from kohort.protocol.errors import (
    ConnectFailed,
    Disconnected,
    ProtocolError,
    RequestTimedOut,
)
from kohort.protocol.sockets import Address, ConnectionSettings
from kohort.types import Millis
from kohort.wire.api.k03_metadata import MetadataRequest
from tests.client import node_cluster
from tests.client.faulty_broker import (
    Fault,
    FaultyBrokers,
    disconnect,
    faulty_brokers,
    garble,
    no_response,
)

SETTINGS = ConnectionSettings(
    client_id="test",
    setup_timeout_ms=Millis(2_000),
    receive_buffer_bytes=65_536,
    send_buffer_bytes=65_536,
)
METADATA = MetadataRequest(topics=())


@pytest.fixture(scope="module")
def node() -> Iterator[node_cluster.Cluster]:
    with kohort.Node(settings=node_cluster.SETTINGS) as started:
        yield node_cluster.Cluster(bootstrap_servers=started.bootstrap_servers)


@pytest.fixture
def broker(node: node_cluster.Cluster) -> Iterator[FaultyBrokers]:
    with faulty_brokers(node.address) as brokers:
        yield brokers


def address_of(broker: FaultyBrokers) -> Address:
    return "localhost", int(broker.bootstrap_servers.rpartition(":")[2])


def connect(address: Address, within_ms: int = 5_000) -> BlockingConnection:
    return BlockingConnection(address, SETTINGS, Millis(monotonic_ms() + within_ms))


def request(connection: BlockingConnection, within_ms: int = 5_000) -> None:
    connection.request(METADATA, Millis(monotonic_ms() + within_ms))


def test_requests_follow_each_other_on_one_connection(broker: FaultyBrokers) -> None:
    connection = connect(address_of(broker))
    request(connection)
    request(connection)
    connection.close()

    assert len(broker.asked(MetadataRequest)) == 2


@pytest.mark.parametrize(("trick", "error"), [(disconnect, Disconnected), (garble, Disconnected)])
def test_a_broken_response_is_an_error(
    broker: FaultyBrokers, trick: Fault, error: type[ProtocolError]
) -> None:
    broker.play(MetadataRequest, trick)
    connection = connect(address_of(broker))

    with pytest.raises(error):
        request(connection)
    connection.close()


def test_a_missing_response_is_an_error_at_the_deadline(broker: FaultyBrokers) -> None:
    broker.play(MetadataRequest, no_response)
    connection = connect(address_of(broker))

    with pytest.raises(RequestTimedOut, match="no response in time"):
        request(connection, 200)
    connection.close()


def test_a_port_without_a_listener_is_unreachable() -> None:
    with pytest.raises(ConnectFailed, match="Connection refused"):
        connect(("127.0.0.1", 1))


def test_an_unknown_host_name_is_unreachable() -> None:
    with pytest.raises(ConnectFailed, match="cannot resolve the host name"):
        connect(("a..b", 9092))


def test_a_server_that_does_not_answer_is_unreachable() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ConnectFailed, match="version negotiation failed: timed out"),
    ):
        connect(silent.getsockname(), 200)
