"""How many connections there may be, and how long they may be silent."""

import pytest

import kohort
from kohort.node.broker import Address
from kohort.wire.api.k03_metadata import MetadataRequest
from tests.node.calling import Caller, HungUp
from tests.waiting import wait_until

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
