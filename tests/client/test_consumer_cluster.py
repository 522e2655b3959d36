"""Clusters of several brokers: partition leaders, leader changes and preferred replicas."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kohort.client.errors import InvalidOffsetError
from kohort.types import BrokerId, ErrorCode, Offset
from kohort.wire.api.k01_fetch import FetchRequest, FetchResponse, LeaderIdAndEpoch
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from tests.client.faulty_broker import Exchange, FaultyBrokers, alter, faulty_brokers, pass_through
from tests.client.node_cluster import Cluster, ProducedRecord, at, offsets, poll_until, read


@pytest.fixture
def brokers(cluster: Cluster) -> Iterator[FaultyBrokers]:
    with faulty_brokers(cluster.address, 3) as found:
        yield found


def through(brokers: FaultyBrokers) -> Cluster:
    return Cluster(bootstrap_servers=brokers.bootstrap_servers)


def each_partition(answer: FetchResponse, **fields: Any) -> FetchResponse:
    responses = tuple(
        replace(topic, partitions=tuple(replace(each, **fields) for each in topic.partitions))
        for topic in answer.responses
    )
    return replace(answer, responses=responses)


def fetched_from(brokers: FaultyBrokers) -> set[int]:
    return {broker for broker, _ in brokers.asked(FetchRequest)}


def test_every_partition_is_fetched_from_its_leader(
    cluster: Cluster, brokers: FaultyBrokers
) -> None:
    topic = cluster.create_topic(6)
    cluster.produce(topic, [ProducedRecord(partition=n % 6, value=b"%d" % n) for n in range(60)])

    with through(brokers).consumer() as consumer:
        consumer.subscribe([topic])
        records = read(consumer, 60)

    assert sorted(int(each.value) for each in records) == list(range(60))
    asked = {
        (broker, each.partition % 3 + 1)
        for broker, body in brokers.asked(FetchRequest)
        for wanted in body.topics
        for each in wanted.partitions
    }
    assert asked == {(1, 1), (2, 2), (3, 3)}


def test_a_moved_leader_is_found_again(cluster: Cluster, brokers: FaultyBrokers) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)
    leader = 1

    def refuse_unless_leading(exchange: Exchange) -> None:
        if exchange.broker_id != leader:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            exchange.answer = each_partition(exchange.answer, error_code=code, records=None)
        pass_through(exchange)

    brokers.leads = lambda _: leader
    brokers.always(FetchRequest, refuse_unless_leading)

    with through(brokers).consumer() as consumer:
        consumer.assign([at(topic)])
        assert offsets(read(consumer, 2)) == [0, 1]
        leader = 3
        cluster.produce(topic, 2)

        assert offsets(read(consumer, 2)) == [2, 3]
    assert fetched_from(brokers) == {1, 3}


def test_a_fetch_error_with_the_new_leader_saves_a_metadata_request(
    cluster: Cluster, brokers: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)
    brokers.leads = lambda _: 1

    def point(exchange: Exchange) -> None:
        if exchange.broker_id == 1:
            exchange.answer = each_partition(
                exchange.answer,
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                records=None,
                current_leader=LeaderIdAndEpoch(leader_id=BrokerId(2), leader_epoch=5),
            )
        pass_through(exchange)

    brokers.always(FetchRequest, point)

    with through(brokers).consumer(group_id=None) as consumer:
        consumer.assign([at(topic)])
        consumer.seek(at(topic), 0)
        poll_until(consumer, lambda: 2 in fetched_from(brokers), "the new leader asked")

    heard = [(broker, type(body)) for broker, body in brokers.heard]
    between = heard[heard.index((1, FetchRequest)) + 1 : heard.index((2, FetchRequest))]
    assert MetadataRequest not in [kind for _, kind in between]


def test_the_preferred_read_replica_is_used(cluster: Cluster, brokers: FaultyBrokers) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    brokers.leads = lambda _: 1

    def send_away(exchange: Exchange) -> None:
        if exchange.broker_id == 1:
            exchange.answer = each_partition(exchange.answer, preferred_read_replica=2, records=b"")
        pass_through(exchange)

    brokers.always(FetchRequest, send_away)

    with through(brokers).consumer(client_rack="b") as consumer:
        consumer.assign([at(topic)])

        assert offsets(read(consumer, 3)) == [0, 1, 2]
    assert fetched_from(brokers) == {1, 2}
    assert {body.rack_id for _, body in brokers.asked(FetchRequest)} == {"b"}


def test_out_of_range_on_a_follower_falls_back_to_the_leader(
    cluster: Cluster, brokers: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    brokers.leads = lambda _: 1
    sent_away: list[int] = []

    def send_away_once(exchange: Exchange) -> None:
        if exchange.broker_id == 2:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
            exchange.answer = each_partition(exchange.answer, error_code=code, records=None)
        elif not sent_away:
            sent_away.append(1)
            exchange.answer = each_partition(exchange.answer, preferred_read_replica=2, records=b"")
        pass_through(exchange)

    brokers.always(FetchRequest, send_away_once)

    with through(brokers).consumer(client_rack="b", auto_offset_reset="none") as consumer:
        consumer.assign([at(topic)])
        consumer.seek(at(topic), 1)

        assert offsets(read(consumer, 2)) == [1, 2]
    assert fetched_from(brokers) == {1, 2}


# Log truncation after a leader change (KIP-320)


def ends_at(offset: int, epoch: int) -> Any:
    def change(answer: OffsetForLeaderEpochResponse) -> OffsetForLeaderEpochResponse:
        topics = tuple(
            replace(
                topic,
                partitions=tuple(
                    replace(each, error_code=0, leader_epoch=epoch, end_offset=Offset(offset))
                    for each in topic.partitions
                ),
            )
            for topic in answer.topics
        )
        return replace(answer, topics=topics)

    return alter(change)


def elect(brokers: FaultyBrokers, epoch: int) -> None:
    """Set the leader epoch; requests with another epoch get an error."""
    brokers.leader_epoch = epoch

    def fence(exchange: Exchange) -> None:
        known = {
            each.current_leader_epoch
            for topic in exchange.request.topics
            for each in topic.partitions
        }
        if known != {epoch}:
            code = ErrorCode.FENCED_LEADER_EPOCH
            exchange.answer = each_partition(exchange.answer, error_code=code, records=None)
        elif exchange.answer.responses:
            exchange.answer = each_partition(exchange.answer, error_code=0)
        pass_through(exchange)

    brokers.always(FetchRequest, fence)


def test_the_position_is_validated_with_a_new_leader(
    cluster: Cluster, brokers: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 4)
    brokers.always(OffsetForLeaderEpochRequest, ends_at(4, 0))

    with through(brokers).consumer() as consumer:
        consumer.assign([at(topic)])
        read(consumer, 4)
        elect(brokers, 1)
        poll_until(consumer, lambda: brokers.asked(OffsetForLeaderEpochRequest), "compared")

        assert consumer.position(at(topic)) == 4
    ((_, asked), *_) = brokers.asked(OffsetForLeaderEpochRequest)
    (wanted,) = asked.topics[0].partitions
    assert (wanted.leader_epoch, wanted.current_leader_epoch) == (0, 1)


def test_records_truncated_by_a_new_leader_are_read_again(
    cluster: Cluster, brokers: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 4)
    brokers.always(OffsetForLeaderEpochRequest, ends_at(2, 0))

    with through(brokers).consumer() as consumer:
        consumer.assign([at(topic)])
        read(consumer, 4)
        elect(brokers, 1)
        poll_until(consumer, lambda: consumer.position(at(topic)) == 2, "back where they agree")


def test_a_truncated_log_is_an_error_without_a_reset_policy(
    cluster: Cluster, brokers: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 4)
    brokers.always(OffsetForLeaderEpochRequest, ends_at(2, 0))

    with through(brokers).consumer(auto_offset_reset="none") as consumer:
        consumer.assign([at(topic)])
        consumer.seek(at(topic), 0)
        read(consumer, 4)
        elect(brokers, 1)

        with pytest.raises(InvalidOffsetError, match="ends at 2, before 4"):
            poll_until(consumer, lambda: False)
