"""The rebalances of a group, from its events; and reading a partition backwards."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer

import kohort
from kohort.admin import rebalance_history
from kohort.admin.cluster_connection import Cluster, open_cluster
from kohort.admin.errors import NoHistory
from kohort.admin.reverse_reader import read_backwards
from kohort.types import GroupId, Millis, Offset, Partition, TopicPartition
from tests.client import node_cluster
from tests.wait import wait_until

PARTY = {"member_id": "m-1", "instance_id": None, "client_id": "m", "client_host": "/10.0.0.1"}


def ended(generation: int, **more: Any) -> dict[str, Any]:
    return {
        "event": "rebalance-ended",
        "at": 1000 + generation,
        "group_id": "billing",
        "ending": "stable",
        "trigger": "member-joined",
        "initiator": PARTY,
        "client_reason": "scaled up",
        "state_before": "Stable",
        "generation_before": generation - 1,
        "generation": generation,
        "started_ms": 900 + generation,
        "join_ended_ms": 950 + generation,
        "join_ended_by": "all-joined",
        "protocol_type": "consumer",
        "protocol": "range",
        "leader": "m-1",
        "participants": [],
        "removals": [],
        **more,
    }


def started(generation: int) -> dict[str, Any]:
    return {
        "event": "rebalance-started",
        "at": 2000,
        "group_id": "billing",
        "generation": generation,
        "trigger": "member-left",
        "initiator": PARTY,
        "client_reason": None,
        "state_before": "Stable",
        "waited_for": ["m-2"],
    }


CHANGED = {
    "event": "state-changed",
    "at": 1,
    "group_id": "billing",
    "before": "Empty",
    "after": "PreparingRebalance",
}


def history_of(*events: object) -> rebalance_history.RebalanceHistory:
    return rebalance_history.find_rebalances(json.dumps(event).encode() for event in events)


def test_each_ended_event_is_one_rebalance() -> None:
    history = history_of(started(0), ended(1), CHANGED, started(1), ended(2))

    assert [each.generation for each in history.rebalances] == [1, 2]
    assert history.unreadable == 0


def test_a_rebalance_in_progress_has_no_ending() -> None:
    history = history_of(ended(1), started(1))

    assert [each.ending for each in history.rebalances] == ["stable", None]
    assert history.rebalances[-1].trigger == "member-left"


def test_the_parts_of_an_event_are_joined() -> None:
    participant = {
        "party": PARTY,
        "join_took_ms": 1,
        "sync_took_ms": 2,
        "had": {},
        "got": {"orders": [0]},
    }
    parts = [ended(1, part=number, parts=2, participants=[participant]) for number in (1, 2)]

    whole = history_of(*parts)
    cut = history_of(parts[1])

    assert [len(each.participants) for each in whole.rebalances] == [2]
    assert cut.rebalances == ()


def test_undecodable_events_are_counted() -> None:
    history = rebalance_history.find_rebalances(
        [b"{", None, b"[]", b'{"event": "rebalance-ended", "at": 1}']
    )

    assert history.rebalances == ()
    assert history.unreadable == 4


def test_a_cluster_without_events_has_no_history() -> None:
    with (
        kohort.Node(settings={"kohort.events.enable": False}) as node,
        open_cluster(node.bootstrap_servers) as cluster,
        pytest.raises(NoHistory, match="has no topic __kohort_events"),
    ):
        rebalance_history.list_rebalances(cluster, GroupId("billing"), Millis(0))


def test_reading_backwards_returns_every_record(
    node: node_cluster.Cluster, cluster: Cluster
) -> None:
    partition = TopicPartition(node.create_topic(), Partition(0))
    producer = Producer({"bootstrap.servers": node.bootstrap_servers})
    for number in range(7_000):
        producer.produce(partition.topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0

    windows = list(read_backwards(cluster, partition, Offset(100), Offset(6_900)))

    assert [(each[0].offset, each[-1].offset) for each in windows] == [
        (5_900, 6_899),
        (1_900, 5_899),
        (100, 1_899),
    ]
    assert sum(map(len, windows)) == 6_800


def test_count_limits_the_number_of_rebalances(
    node: node_cluster.Cluster, cluster: Cluster
) -> None:
    topic, group = node.create_topic(), GroupId(node.name_group())
    for _ in range(3):
        with node.consumer(group_id=group) as consumer:
            consumer.subscribe([topic])
            node_cluster.poll_until(consumer, consumer.assignment, "partitions")

    def read(**options: Any) -> list[tuple[str | None, str | None]]:
        found = rebalance_history.list_rebalances(cluster, group, Millis(0), **options)
        return [(each.trigger, each.ending) for each in found]

    wait_until(lambda: len(read()) == 6, 20, "all events")
    assert read(count=2) == [("member-joined", "stable"), ("member-left", "empty")]
    assert rebalance_history.list_rebalances(cluster, group, Millis(2**42)) == ()
