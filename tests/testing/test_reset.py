"""`Node.reset`: topics, groups and offsets are gone, also after a restart."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

import kohort
from kohort.node.control.errors import ControlError
from kohort.testing.local_node import LocalNode
from kohort.types import ErrorCode, Generation, GroupId, MemberId, Offset, Partition, Topic
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.node.raw_client import RawClient, join_alone, join_first, join_request
from tests.testing.node_client import connect, list_groups, list_topics, produce, read
from tests.wait import wait_until

EMPTY = ["__consumer_offsets"]
"""The topics of a new node."""


@pytest.fixture(
    params=[
        kohort.Node,
        lambda: kohort.Node(settings={"kohort.durability": "fsync"}),
        kohort.Node.process,
    ],
    ids=["thread", "fsync", "process"],
)
def node(request: pytest.FixtureRequest) -> Iterator[LocalNode[Any]]:
    make: Callable[[], LocalNode[Any]] = request.param
    with make() as node:
        yield node


def commit(client: RawClient, group: str, topic: str, offset: int) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=Partition(0), committed_offset=Offset(offset)
    )
    asked = OffsetCommitRequestTopic(name=Topic(topic), partitions=(partition,))
    request = OffsetCommitRequest(
        group_id=GroupId(group), generation_id_or_member_epoch=Generation(-1), topics=(asked,)
    )
    answer = client.ask(request, 8)
    assert answer.topics[0].partitions[0].error_code == 0


def committed(client: RawClient, group: str) -> object:
    return client.ask(OffsetFetchRequest(group_id=GroupId(group), topics=None), 7).topics


def heartbeat(client: RawClient, group: str, member: str, generation: int) -> ErrorCode:
    request = HeartbeatRequest(
        group_id=GroupId(group), generation_id=Generation(generation), member_id=MemberId(member)
    )
    return ErrorCode(client.ask(request, 4).error_code)


def test_topics_groups_and_offsets_are_gone_also_after_a_restart(node: LocalNode[Any]) -> None:
    servers = node.bootstrap_servers
    for topic in ("orders", "payments"):
        produce(servers, topic, "a", "b")
    with connect(servers) as client:
        commit(client, "simple", "orders", 2)
        join_alone(client, "billing")
        assert list_groups(servers) == ["billing", "simple"]

        node.reset()

        assert list_topics(servers) == EMPTY
        assert list_groups(servers) == []
        assert committed(client, "simple") == ()

    def kill_and_start() -> None:
        node.kill()
        node.start()

    for restart in (node.restart, kill_and_start):
        restart()
        assert list_topics(servers) == EMPTY
        assert list_groups(servers) == []


def test_topic_of_the_same_name_starts_empty(node: LocalNode[Any]) -> None:
    servers = node.bootstrap_servers
    for values in (["a", "b"], ["c"], ["d", "e", "f"]):
        produce(servers, "orders", *values)
        assert read(servers, "orders") == values
        node.reset()

    assert list_topics(servers) == EMPTY


def test_member_of_a_reset_group_is_unknown_and_may_join_again(node: LocalNode[Any]) -> None:
    with connect(node.bootstrap_servers) as client:
        member = join_alone(client, "billing")

        node.reset()

        answer = heartbeat(client, "billing", member.member_id, member.generation)
        assert answer is ErrorCode.UNKNOWN_MEMBER_ID
        assert join_alone(client, "billing").generation == 1


def test_parked_requests_of_members_are_refused(node: LocalNode[Any]) -> None:
    """One member waits for the join of another one, which waits for an assignment."""
    with connect(node.bootstrap_servers) as first, connect(node.bootstrap_servers) as second:
        member = join_first(first, "billing")
        returned = second.ask(join_request("billing"), 9)
        parked = second.send(join_request("billing", returned.member_id), 9)
        busy = ErrorCode.REBALANCE_IN_PROGRESS
        wait_until(
            lambda: heartbeat(first, "billing", member.member_id, member.generation_id) is busy,
            what="the second join is parked",
        )

        node.reset()

        assert second.receive(parked).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert list_groups(node.bootstrap_servers) == []


def test_group_in_its_initial_delay_is_reset() -> None:
    settings = {"group.initial.rebalance.delay.ms": 600_000}
    with (
        kohort.Node(settings=settings) as node,
        connect(node.bootstrap_servers) as client,
    ):
        returned = client.ask(join_request("billing"), 9)
        parked = client.send(join_request("billing", returned.member_id), 9)
        wait_until(lambda: node.request("status", {})["groups"] == 1)

        node.reset()

        assert client.receive(parked).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert list_groups(node.bootstrap_servers) == []


def test_reset_of_an_empty_node_changes_nothing(node: LocalNode[Any]) -> None:
    assert node.request("reset", {}) == {"topics": 0, "groups": 0}
    assert list_topics(node.bootstrap_servers) == EMPTY


def test_clients_that_stay_connected_work_after_a_reset(node: LocalNode[Any]) -> None:
    servers = node.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=servers)
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=servers, group_id="billing", auto_offset_reset="earliest"
    )

    def read_one() -> list[bytes]:
        polled = consumer.poll(timeout_ms=200)
        return [record.value for records in polled.values() for record in records]

    try:
        producer.send("orders", b"before").get(20)
        assert wait_until(read_one, 30) == [b"before"]

        node.reset()

        producer.send("orders", b"after").get(20)
        assert wait_until(read_one, 30) == [b"after"]
    finally:
        consumer.close()
        producer.close()


def test_idempotent_producer_and_its_consumer_begin_again(node: LocalNode[Any]) -> None:
    config = {"bootstrap.servers": node.bootstrap_servers}
    for value in (b"first", b"second"):
        producer = Producer({**config, "enable.idempotence": True})
        producer.produce("orders", value)
        assert producer.flush(20) == 0
        consumer = Consumer({**config, "group.id": "billing", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        record = wait_until(partial(consumer.poll, 0.2), 30)
        assert record is not None
        assert (record.offset(), record.value()) == (0, value)
        consumer.close()
        node.reset()

    assert list_groups(node.bootstrap_servers) == []


def test_unknown_operation_is_refused_with_the_known_ones(node: LocalNode[Any]) -> None:
    with pytest.raises(ControlError, match=r"unknown operation 'rset': use one of .*reset"):
        node.request("rset", {})


def test_metadata_does_not_bring_a_topic_back(node: LocalNode[Any]) -> None:
    produce(node.bootstrap_servers, "orders", "a")
    node.reset()
    with connect(node.bootstrap_servers) as client:
        client.ask(MetadataRequest(topics=None), 9)

    assert list_topics(node.bootstrap_servers) == EMPTY
