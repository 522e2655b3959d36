"""How many connections there may be, and how long they may be silent."""

import gc
import socket
import threading

import pytest

import kohort
from kohort.node.broker import Address
from kohort.wire.api.k03_metadata import MetadataRequest
from tests.node.calling import Caller, HungUp
from tests.waiting import pause, wait_until

ANYTHING = MetadataRequest(topics=())


def address_of(node: kohort.Node) -> Address:
    host, _, port = node.bootstrap_servers.rpartition(":")
    return Address(host=host, port=int(port))


def test_one_connection_too_many_is_closed_until_another_one_goes() -> None:
    with kohort.Node(settings={"max.connections": 2}) as node:
        address = address_of(node)
        with Caller(address) as first, Caller(address) as second:
            assert first.ask(ANYTHING, 9).brokers
            assert second.ask(ANYTHING, 9).brokers
            with Caller(address) as third, pytest.raises(HungUp):
                third.receive_frame()
            assert second.ask(ANYTHING, 9).brokers

        wait_until(lambda: is_answered(address), what="room for another one")


def is_answered(address: Address) -> bool:
    try:
        with Caller(address) as caller:
            return bool(caller.ask(ANYTHING, 9).brokers)
    except (HungUp, ConnectionError):
        return False


def test_a_silent_connection_is_closed_and_a_talkative_one_is_not() -> None:
    with kohort.Node(settings={"connections.max.idle.ms": 150}) as node:
        address = address_of(node)
        with Caller(address) as silent, Caller(address) as talkative:
            silent.socket.settimeout(0)

            def is_closed() -> bool:
                assert talkative.ask(ANYTHING, 9).brokers
                try:
                    silent.receive_frame()
                except BlockingIOError:
                    return False
                except HungUp:
                    return True
                raise AssertionError("an answer to nothing")

            wait_until(is_closed, what="the silent one closed")
            assert talkative.ask(ANYTHING, 9).brokers


def test_who_connects_while_the_node_stops_is_not_left_half_connected() -> None:
    """An open socket that nobody closes is an error of the test itself."""
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
