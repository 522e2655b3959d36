"""A producer that wants no answers learns of an error only when its connection ends."""

import pytest

from kohort.node.broker import Address
from kohort.node.embedded import Node
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from tests.node.asking import new_batch, produce_request
from tests.node.calling import Caller, HungUp


def test_what_was_answered_before_still_arrives_and_nothing_after() -> None:
    with Node() as node:
        host, _, port = node.bootstrap_servers.rpartition(":")
        with Caller(Address(host=host, port=int(port))) as caller:
            first, before = caller.encode(ApiVersionsRequest(), 0)
            _, refused = caller.encode(produce_request(new_batch("a"), "nowhere", acks=0), 12)
            _, after = caller.encode(ApiVersionsRequest(), 0)
            caller.socket.sendall(before + refused + after)

            assert caller.receive(first).error_code == 0
            with pytest.raises(HungUp):
                caller.receive_frame()
