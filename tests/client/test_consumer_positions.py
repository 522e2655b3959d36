"""Positions: offset reset, seek, pause and offset lookups."""

from typing import Any

import pytest

from kohort.client.errors import InvalidOffsetError, UnknownTopicOrPartitionError
from kohort.types import Topic
from tests.client.node_cluster import Cluster, ProducedRecord, at, flatten, offsets, read
from tests.wait import wait_until


def test_earliest_starts_at_the_first_record(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 5)

    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])

        assert offsets(read(consumer, 5)) == [0, 1, 2, 3, 4]


def test_latest_starts_at_the_end(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 5)

    with cluster.consumer(auto_offset_reset="latest") as consumer:
        consumer.assign([at(topic)])
        assert consumer.position(at(topic)) == 5
        cluster.produce(topic, 2)

        assert offsets(read(consumer, 2)) == [5, 6]


def test_without_a_reset_policy_a_missing_offset_raises(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 5)

    with cluster.consumer(auto_offset_reset="none") as consumer:
        consumer.assign([at(topic)])
        with pytest.raises(InvalidOffsetError, match="no committed offset"):
            consumer.poll(20_000)
        with pytest.raises(InvalidOffsetError):
            consumer.position(at(topic))
        with pytest.raises(InvalidOffsetError):
            consumer.poll(0)
        consumer.seek(at(topic), 3)

        assert offsets(read(consumer, 2)) == [3, 4]


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 6), ("latest", 10)])
def test_an_out_of_range_position_is_reset(cluster: Cluster, reset: str, expected: int) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 10)
    cluster.delete_before(at(topic), 6)

    with cluster.consumer(auto_offset_reset=reset) as consumer:
        consumer.assign([at(topic)])
        consumer.seek(at(topic), 2)
        consumer.poll(50)

        wait_until(lambda: consumer.position(at(topic)) >= 6 or consumer.poll(20), 20)
        assert consumer.position(at(topic)) >= expected


def test_without_a_reset_policy_an_out_of_range_position_raises(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)

    with cluster.consumer(auto_offset_reset="none") as consumer:
        consumer.assign([at(topic)])
        consumer.seek(at(topic), 99)

        with pytest.raises(InvalidOffsetError, match="99 is out of range"):
            consumer.poll(20_000)


def test_seek_moves_the_position(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 10)

    with cluster.consumer() as consumer:
        consumer.assign([at(topic)])
        read(consumer, 10)
        assert consumer.position(at(topic)) == 10
        consumer.seek(at(topic), 7)
        assert consumer.position(at(topic)) == 7
        assert offsets(read(consumer, 3)) == [7, 8, 9]
        consumer.seek_to_beginning(at(topic))
        assert consumer.position(at(topic)) == 0
        assert offsets(read(consumer, 10)) == list(range(10))
        consumer.seek_to_beginning()
        consumer.seek_to_end()

        assert consumer.position(at(topic)) == 10


def test_offset_lookups_do_not_need_an_assignment(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    at_ms = 1_700_000_000_000
    cluster.produce(
        topic, [ProducedRecord(value=b"", timestamp_ms=at_ms + 1000 * n) for n in range(5)]
    )
    cluster.delete_before(at(topic), 1)

    with cluster.consumer(group_id=None) as consumer:
        partitions = [at(topic, 0), at(topic, 1)]
        assert consumer.beginning_offsets(partitions) == {partitions[0]: 1, partitions[1]: 0}
        assert consumer.end_offsets(partitions) == {partitions[0]: 5, partitions[1]: 0}
        found = consumer.offsets_for_times({partitions[0]: at_ms + 1500, partitions[1]: at_ms})

    assert found[partitions[1]] is None
    first = found[partitions[0]]
    assert first is not None
    assert (first.offset, first.timestamp) == (2, at_ms + 2000)


def test_a_timestamp_after_all_records_has_no_offset(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, [ProducedRecord(value=b"", timestamp_ms=1_700_000_000_000)])

    with cluster.consumer(group_id=None) as consumer:
        assert consumer.offsets_for_times({at(topic): 1_800_000_000_000}) == {at(topic): None}


@pytest.mark.parametrize("method", ["end_offsets", "beginning_offsets"])
def test_a_missing_topic_is_named_at_the_timeout(cluster: Cluster, method: str) -> None:
    with (
        cluster.consumer() as consumer,
        pytest.raises(UnknownTopicOrPartitionError, match="'nowhere'"),
    ):
        getattr(consumer, method)([at(Topic("nowhere"))], timeout_ms=300)


def test_a_paused_partition_returns_no_records(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    both = [at(topic, 0), at(topic, 1)]
    cluster.produce(topic, [ProducedRecord(partition=n % 2, value=b"%d" % n) for n in range(10)])

    with cluster.consumer() as consumer:
        consumer.assign(both)
        consumer.pause(both[0])
        assert consumer.paused() == {both[0]}
        assert {each.partition for each in read(consumer, 5)} == {1}
        assert consumer.poll(100) == {}
        consumer.resume(both[0])

        assert consumer.paused() == frozenset()
        assert {each.partition for each in read(consumer, 5)} == {0}


def test_pause_within_a_loop_stops_that_partition(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 20)

    with cluster.consumer(consumer_timeout_ms=500) as consumer:
        consumer.assign([at(topic)])
        seen = []
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 4:
                consumer.pause(at(topic))
        assert seen == [0, 1, 2, 3, 4]
        consumer.resume(at(topic))

        assert offsets(consumer) == list(range(5, 20))


def test_seek_within_a_loop_affects_the_next_record(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 20)

    with cluster.consumer(consumer_timeout_ms=500) as consumer:
        consumer.assign([at(topic)])
        seen: list[int] = []
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 2 and len(seen) < 4:
                consumer.seek(at(topic), 18)

    assert seen == [0, 1, 2, 18, 19]


def test_position_within_a_loop_is_behind_the_current_record(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)

    with cluster.consumer() as consumer:
        consumer.assign([at(topic)])
        positions = []
        for record in consumer:
            positions.append((record.offset, consumer.position(at(topic))))
            if record.offset == 2:
                break

    assert positions == [(0, 1), (1, 2), (2, 3)]


def test_poll_after_a_loop_continues_at_its_position(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 10)

    with cluster.consumer() as consumer:
        consumer.assign([at(topic)])
        for record in consumer:
            if record.offset == 3:
                break

        assert offsets(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


def test_changing_an_assignment_keeps_positions(cluster: Cluster) -> None:
    topic = cluster.create_topic(3)
    cluster.produce(topic, [ProducedRecord(partition=n % 3, value=b"%d" % n) for n in range(9)])

    with cluster.consumer(group_id=None) as consumer:
        consumer.assign([at(topic, 0), at(topic, 1)])
        read(consumer, 6)
        consumer.assign([at(topic, 1), at(topic, 2)])
        assert consumer.assignment() == {at(topic, 1), at(topic, 2)}

        assert [(each.partition, each.offset) for each in read(consumer, 3)] == [
            (2, 0),
            (2, 1),
            (2, 2),
        ]


def test_topics_and_partitions_can_be_listed(cluster: Cluster) -> None:
    topic = cluster.create_topic(4)

    with cluster.consumer() as consumer:
        assert consumer.partitions_for_topic(topic) == {0, 1, 2, 3}
        assert consumer.partitions_for_topic("nowhere") == frozenset()
        assert topic in consumer.topics()
        assert not {each for each in consumer.topics() if each.startswith("__")}


@pytest.mark.parametrize(
    "options", [{"isolation_level": "read_committed"}, {"client_rack": "here"}], ids=str
)
def test_plain_records_are_read_with_either_isolation_level(
    cluster: Cluster, options: dict[str, Any]
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)

    with cluster.consumer(**options) as consumer:
        consumer.assign([at(topic)])

        assert offsets(flatten({at(topic): read(consumer, 3)})) == [0, 1, 2]
