"""A node without a free file descriptor refuses single operations and keeps running."""

import contextlib
import resource
import socket
from functools import partial
from pathlib import Path

import pytest

from kohort.log.errors import OutOfResources
from kohort.log.sync_queue import PendingSync
from kohort.node import sync_thread
from kohort.types import ErrorCode, Topic
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.node.broker_harness import new_batch, produce_request
from tests.node.raw_client import Membership, RawClient, join_alone
from tests.node.served_node import ServedNode
from tests.wait import wait_until

PARTITIONS = 200
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "kohort.durability": "fsync"}


def produce(client: RawClient, partition: int) -> ErrorCode:
    request = produce_request(new_batch("x"), "t", partition, acks=-1)
    ((answer,),) = [each.partition_responses for each in client.ask(request, 12).responses]
    return ErrorCode(answer.error_code)


def create(client: RawClient, name: str, partitions: int) -> ErrorCode:
    topic = CreatableTopic(name=Topic(name), num_partitions=partitions, replication_factor=1)
    (result,) = client.ask(CreateTopicsRequest(topics=(topic,)), 7).topics
    return ErrorCode(result.error_code)


def beat(client: RawClient, member: Membership) -> ErrorCode:
    request = HeartbeatRequest(
        group_id=member.group_id, generation_id=member.generation, member_id=member.member_id
    )
    return ErrorCode(client.ask(request, 4).error_code)


def limit(node: ServedNode, more: int) -> None:
    """Allow the node only a few more descriptors than it uses."""
    _, hard = resource.prlimit(node.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (node.open_files + more, hard))


def test_node_without_descriptors_serves_its_clients_and_recovers(tmp_path: Path) -> None:
    settings = {**SETTINGS, "kohort.open.files.max": 4}
    with ServedNode(tmp_path, settings) as node, RawClient(node.address) as client:
        assert create(client, "t", PARTITIONS) is ErrorCode.NONE
        assert produce(client, 0) is ErrorCode.NONE
        member = join_alone(client, "g")
        assert beat(client, member) is ErrorCode.NONE
        limit(node, 12)

        with contextlib.ExitStack() as callers:
            for _ in range(40):
                callers.enter_context(socket.create_connection(tuple_of(node)))
            wait_until(lambda: "cannot-accept" in node.log)
            told = [produce(client, each) for each in range(PARTITIONS)]
            assert set(told) <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
            assert beat(client, member) is ErrorCode.NONE

        # As clients do: the node notices only after a while that the connections are closed.
        for each in range(PARTITIONS):
            wait_until(partial(has_room, client, each))
        assert create(client, "u", 1) is ErrorCode.NONE
        with RawClient(node.address) as other:
            assert produce(other, 0) is ErrorCode.NONE
        assert node.log.count("cannot-accept") == 1
        assert "disk-failed" not in node.log
        assert node.stop() == 0


def has_room(client: RawClient, partition: int) -> bool:
    return produce(client, partition) is ErrorCode.NONE


def tuple_of(node: ServedNode) -> tuple[str, int]:
    return node.address.host, node.address.port


def test_more_partitions_than_descriptors(tmp_path: Path) -> None:
    settings = {**SETTINGS, "kohort.open.files.max": 20}
    with ServedNode(tmp_path, settings) as node, RawClient(node.address) as client:
        assert create(client, "t", PARTITIONS) is ErrorCode.NONE
        before = node.open_files

        assert {produce(client, each) for each in range(PARTITIONS)} == {ErrorCode.NONE}

        assert node.open_files <= before + 20
        node.kill()
    with ServedNode(tmp_path, settings) as node, RawClient(node.address) as client:
        assert {produce(client, each) for each in range(PARTITIONS)} == {ErrorCode.NONE}
        assert node.stop() == 0


def test_sync_waits_for_a_descriptor(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Waiting(PendingSync):
        def __init__(self) -> None:
            self.tries = 0

        def sync(self) -> None:
            self.tries += 1
            if self.tries < 4:
                raise OutOfResources("t-0/0.log", "open", "Too many open files")

    monkeypatch.setattr(sync_thread, "RETRY_S", 0)
    files = [Waiting(), Waiting()]

    sync_thread.sync_all(files)

    assert [each.tries for each in files] == [4, 4]
    assert "storage-error partition=t-0" in caplog.text
