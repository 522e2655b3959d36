"""What befell a group, from its events: the last of them, in parts, and among much else."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer

import kohort
from kohort.admin import history
from kohort.admin.cluster import Cluster, open_cluster
from kohort.admin.errors import NoHistory
from kohort.admin.reading import read_backwards
from kohort.client.topic_partition import TopicPartition
from kohort.coordinator.partitioner import partition_of
from kohort.types import GroupId, Millis, Offset, Partition
from tests.client import clusters
from tests.waiting import wait_until

PARTY = {"member_id": "m-1", "instance_id": None, "client_id": "m", "client_host": "/10.0.0.1"}


def ended(generation: int, **more: Any) -> dict[str, Any]:
    return {
        "event": "rebalance-ended",
        "at": 1000 + generation,
        "group_id": "billing",
        "ending": "stable",
        "trigger": "member-joined",
        "culprit": PARTY,
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
        "culprit": PARTY,
        "client_reason": None,
        "state_before": "Stable",
        "waited_for": ["m-2"],
    }


def tell(*events: object) -> history.History:
    return history.tell(json.dumps(event).encode() for event in events)


def test_each_ending_is_one_rebalance() -> None:
    told = tell(started(0), ended(1), {"event": "state-changed", "at": 1}, started(1), ended(2))

    assert [each.generation for each in told.rebalances] == [1, 2]
    assert told.unreadable == 0


def test_a_rebalance_that_goes_on_has_not_ended() -> None:
    told = tell(ended(1), started(1))

    assert [each.ending for each in told.rebalances] == ["stable", None]
    assert told.rebalances[-1].trigger == "member-left"


def test_an_event_in_parts_is_put_together() -> None:
    participant = {
        "party": PARTY,
        "join_took_ms": 1,
        "sync_took_ms": 2,
        "had": {},
        "got": {"orders": [0]},
    }
    parts = [ended(1, part=number, parts=2, participants=[participant]) for number in (1, 2)]

    whole = tell(*parts)
    cut = tell(parts[1])

    assert [len(each.participants) for each in whole.rebalances] == [2]
    assert cut.rebalances == ()


def test_what_makes_no_sense_is_counted() -> None:
    told = history.tell([b"{", None, b"[]", b'{"event": "rebalance-ended", "at": 1}'])

    assert told.rebalances == ()
    assert told.unreadable == 4


@pytest.mark.parametrize(
    "group_id", ["", "billing", "polygenelubricants", "grüppe", "組", "🐘🐘", "a" * 300]
)
def test_a_group_is_looked_for_where_its_coordinator_keeps_it(group_id: str) -> None:
    for partitions in (1, 4, 50):
        home = history.home_of(GroupId(group_id), partitions)

        assert home == partition_of(GroupId(group_id), partitions)


def test_a_cluster_without_events_has_no_history() -> None:
    with (
        kohort.Node(settings={"kohort.events.enable": False}) as node,
        open_cluster(node.bootstrap_servers) as cluster,
        pytest.raises(NoHistory, match="keeps no events"),
    ):
        history.rebalances(cluster, GroupId("billing"), Millis(0))


def test_a_partition_is_read_backwards_without_a_gap(
    node: clusters.Cluster, cluster: Cluster
) -> None:
    place = TopicPartition(node.create_topic(), Partition(0))
    producer = Producer({"bootstrap.servers": node.bootstrap_servers})
    for number in range(7_000):
        producer.produce(place.topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0

    windows = list(read_backwards(cluster, place, Offset(100), Offset(6_900)))

    assert [(each[0].offset, each[-1].offset) for each in windows] == [
        (5_900, 6_899),
        (1_900, 5_899),
        (100, 1_899),
    ]
    assert sum(map(len, windows)) == 6_800


def test_only_as_many_rebalances_are_read_as_are_wished_for(
    node: clusters.Cluster, cluster: Cluster
) -> None:
    topic, group = node.create_topic(), GroupId(node.name_group())
    for _ in range(3):
        with node.consumer(group_id=group) as consumer:
            consumer.subscribe([topic])
            clusters.poll_until(consumer, consumer.assignment, "partitions")

    def read(**wish: Any) -> list[tuple[str | None, str | None]]:
        found = history.rebalances(cluster, group, Millis(0), **wish)
        return [(each.trigger, each.ending) for each in found]

    wait_until(lambda: len(read()) == 6, 20, "all events")
    assert read(count=2) == [("member-joined", "stable"), ("member-left", "empty")]
    assert history.rebalances(cluster, group, Millis(2**42)) == ()
