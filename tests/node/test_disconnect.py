"""A failed produce with acks=0 closes the connection."""

import pytest

from kohort.node.broker import Address
from kohort.testing.node import Node
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from tests.node.broker_harness import new_batch, produce_request
from tests.node.raw_client import Disconnected, RawClient


def test_earlier_responses_arrive_before_the_disconnect() -> None:
    with Node() as node:
        host, _, port = node.bootstrap_servers.rpartition(":")
        with RawClient(Address(host=host, port=int(port))) as client:
            first, before = client.encode(ApiVersionsRequest(), 0)
            _, refused = client.encode(produce_request(new_batch("a"), "nowhere", acks=0), 12)
            _, after = client.encode(ApiVersionsRequest(), 0)
            client.socket.sendall(before + refused + after)

            assert client.receive(first).error_code == 0
            with pytest.raises(Disconnected):
                client.receive_frame()
