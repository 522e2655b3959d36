"""A node process that is stopped and continued, as in a paused virtual machine."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.node.raw_client import Membership, RawClient, join_alone
from tests.node.served_node import ServedNode
from tests.wait import wait_until

SESSION_MS = 3_000
STOPPED_S = 4.5

SETTINGS = {"group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 0}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ServedNode]:
    with ServedNode(tmp_path, SETTINGS) as node:
        yield node


def heartbeat(member: Membership) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=member.group_id, generation_id=member.generation, member_id=member.member_id
    )


def stop_for_longer_than_the_session(node: ServedNode) -> None:
    node.signal(signal.SIGSTOP)
    end = time.monotonic() + STOPPED_S
    wait_until(lambda: time.monotonic() >= end, what="the end of the stop")
    node.signal(signal.SIGCONT)


def test_a_member_that_heartbeats_after_a_stop_keeps_its_session(node: ServedNode) -> None:
    with RawClient(node.address) as client:
        member = join_alone(client, "g", session_ms=SESSION_MS)

        stop_for_longer_than_the_session(node)
        answer = client.ask(heartbeat(member), 4)

        assert answer.error_code == 0
        wait_until(lambda: "loop-suspended seconds=" in node.log, what="a log line about the stop")


def test_a_member_that_heartbeats_during_a_stop_keeps_its_session(node: ServedNode) -> None:
    with RawClient(node.address) as client, RawClient(node.address) as other:
        member = join_alone(client, "g", session_ms=SESSION_MS)

        node.signal(signal.SIGSTOP)
        sent = [client.send(heartbeat(member), 4) for _ in range(3)]
        stop_for_longer_than_the_session(node)

        assert [client.receive(each).error_code for each in sent] == [0, 0, 0]
        assert other.ask(heartbeat(member), 4).error_code == 0
