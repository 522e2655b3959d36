"""`max.connections` and `connections.max.idle.ms` over real sockets."""

import gc
import resource
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

import kohort
from kohort.node.broker import Address
from kohort.wire.api.k03_metadata import MetadataRequest
from tests.node.raw_client import Disconnected, RawClient
from tests.wait import pause, wait_until

ANYTHING = MetadataRequest(topics=())


def address_of(node: kohort.Node) -> Address:
    host, _, port = node.bootstrap_servers.rpartition(":")
    return Address(host=host, port=int(port))


def test_connection_above_the_maximum_is_closed() -> None:
    with kohort.Node(settings={"max.connections": 2}) as node:
        address = address_of(node)
        with RawClient(address) as first, RawClient(address) as second:
            assert first.ask(ANYTHING, 9).brokers
            assert second.ask(ANYTHING, 9).brokers
            with RawClient(address) as third, pytest.raises(Disconnected):
                third.receive_frame()
            assert second.ask(ANYTHING, 9).brokers

        wait_until(lambda: is_answered(address), what="room for another one")


def test_connection_above_the_maximum_of_its_address_is_closed() -> None:
    with kohort.Node(settings={"max.connections.per.ip": 1}) as node:
        address = address_of(node)
        with RawClient(address) as first:
            assert first.ask(ANYTHING, 9).brokers
            with RawClient(address) as second, pytest.raises(Disconnected):
                second.receive_frame()
            assert first.ask(ANYTHING, 9).brokers

        wait_until(lambda: is_answered(address), what="room for another one")


def test_some_file_descriptors_are_not_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8, 8))

    with kohort.Node() as node, ExitStack() as stack:
        clients = [stack.enter_context(RawClient(address_of(node))) for _ in range(7)]

        assert [is_open(client) for client in clients] == [True] * 6 + [False]


def is_open(client: RawClient) -> bool:
    try:
        return bool(client.ask(ANYTHING, 9).brokers)
    except (Disconnected, ConnectionError):
        return False


_PRINT_MISSING = """
import sys
import kohort
from kohort.node import dispatch
from tests.wait import wait_until

files = {f"kohort.node.handlers.{file}" for file in dispatch.HANDLER_FILES}
with kohort.Node():
    wait_until(lambda: not files - set(sys.modules), what="all handlers imported")
print("imported")
"""


def test_handlers_are_imported_without_a_request() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PRINT_MISSING], capture_output=True, text=True, check=False
    )

    assert ran.stdout.strip() == "imported", ran.stderr


def is_answered(address: Address) -> bool:
    try:
        with RawClient(address) as client:
            return bool(client.ask(ANYTHING, 9).brokers)
    except (Disconnected, ConnectionError):
        return False


def test_idle_connection_is_closed_and_active_one_is_not() -> None:
    with kohort.Node(settings={"connections.max.idle.ms": 150}) as node:
        address = address_of(node)
        with RawClient(address) as silent, RawClient(address) as talkative:
            silent.socket.settimeout(0)

            def is_closed() -> bool:
                assert talkative.ask(ANYTHING, 9).brokers
                try:
                    silent.receive_frame()
                except BlockingIOError:
                    return False
                except Disconnected:
                    return True
                raise AssertionError("an answer to nothing")

            wait_until(is_closed, what="the silent one closed")
            assert talkative.ask(ANYTHING, 9).brokers


def test_connection_during_shutdown_is_closed() -> None:
    """Close the socket; an open one would fail the test."""
    node = kohort.Node().start()
    address, ending = address_of(node), threading.Event()

    def connect() -> None:
        while not ending.is_set():
            try:
                socket.create_connection((address.host, address.port), 1).close()
            except OSError:
                pause(0.001)

    threads = [threading.Thread(target=connect) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: is_answered(address), what="the node is there")
    node.stop()
    ending.set()
    for thread in threads:
        thread.join()
    gc.collect()
