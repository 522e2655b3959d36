"""Cluster metadata: when it is requested and how responses are merged."""

from dataclasses import replace
from typing import Any

import pytest

from kohort.client.errors import BrokerResponseError
from kohort.client.member.effects import BrokerAddress
from kohort.client.network.metadata import ConsumerMetadata
from kohort.client.options import read_options
from kohort.protocol.backoff import Backoff
from kohort.types import BrokerId, ErrorCode, Millis, Topic, Uuid
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tests.client.core_driver import ORDERS, metadata, partition

NOW = Millis(10_000)
WANTED = frozenset((ORDERS,))


def cluster_of(**options: object) -> ConsumerMetadata:
    given = {"retry_backoff_ms": 100, "metadata_max_age_ms": 5_000, **options}
    return ConsumerMetadata(
        read_options(given.items()), Backoff(Millis(100), Millis(1_000), lambda: 0.5)
    )


def watching(leaders: dict[int, int], **told: Any) -> ConsumerMetadata:
    cluster = cluster_of()
    cluster.watch(WANTED, is_all=False)
    cluster.new_request()
    cluster.update(metadata(leaders, **told), NOW)
    return cluster


def failing(code: ErrorCode) -> MetadataResponse:
    return MetadataResponse(topics=(MetadataResponseTopic(name=ORDERS, error_code=code),))


# Requests


def test_no_request_without_watched_topics() -> None:
    assert cluster_of().due() is None


def test_watched_topics_are_requested_at_once_and_after_max_age() -> None:
    cluster = cluster_of()
    cluster.watch(WANTED, is_all=False)
    assert cluster.due() == 0

    question = cluster.new_request()
    assert isinstance(question, MetadataRequest)
    assert [each.name for each in question.topics or ()] == [ORDERS]
    assert cluster.due() is None
    cluster.update(metadata({0: 1}), NOW)

    assert cluster.due() == NOW + 5_000


def test_all_topics_are_requested_with_null() -> None:
    cluster = cluster_of(allow_auto_create_topics=False)
    cluster.watch(frozenset(), is_all=True)

    question = cluster.new_request()

    assert question.topics is None
    assert not question.allow_auto_topic_creation


def test_a_requested_update_waits_for_the_backoff() -> None:
    cluster = watching({0: 1})
    cluster.request_update()

    assert cluster.due() == NOW + 100


def test_a_requested_update_uses_the_request_in_flight() -> None:
    cluster = watching({0: 1})
    cluster.request_update()
    cluster.new_request()
    cluster.request_update()
    cluster.update(metadata({0: 1}), NOW)

    assert cluster.due() == NOW + 5_000


def test_missing_topics_are_requested_with_backoff() -> None:
    cluster = watching({0: 1})
    due = []
    for _ in range(6):
        cluster.new_request()
        cluster.update(failing(ErrorCode.LEADER_NOT_AVAILABLE), NOW)
        due.append((cluster.due() or 0) - NOW)

    assert due == [100, 200, 400, 800, 1_000, 1_000]


def test_a_partition_without_a_leader_is_requested_again() -> None:
    cluster = watching({0: 1, 1: -1})

    assert cluster.find_leader(partition(0)) == BrokerAddress(
        node_id=BrokerId(1), host="broker-1", port=9092
    )
    assert cluster.find_leader(partition(1)) is None
    assert cluster.due() == NOW + 100


def test_a_failed_request_is_retried() -> None:
    cluster = watching({0: 1})
    cluster.new_request()
    cluster.on_request_failed(NOW)

    assert cluster.due() == NOW + 100


def test_a_new_topic_is_requested_at_once() -> None:
    cluster = watching({0: 1})
    both = WANTED | {Topic("refunds")}
    cluster.watch(both, is_all=False)
    assert cluster.due() == 0
    assert not cluster.covers(both)

    cluster.new_request()
    cluster.update(metadata({0: 1}), NOW)

    assert cluster.covers(both)
    assert cluster.partition_counts(both) == {ORDERS: 1}


def test_an_older_response_does_not_cover_new_topics() -> None:
    cluster = watching({0: 1})
    cluster.new_request()
    cluster.watch(frozenset((Topic("refunds"),)), is_all=False)
    cluster.update(metadata({0: 1}), NOW)

    assert not cluster.covers(frozenset((Topic("refunds"),)))
    assert cluster.due() == 0


# Responses


def test_outdated_metadata_does_not_restore_an_old_leader() -> None:
    cluster = watching({0: 2}, epoch=5)
    cluster.new_request()
    cluster.update(metadata({0: 1}, epoch=4), NOW)

    assert cluster.leader_epoch(partition(0)) == 5
    assert cluster.find_leader(partition(0)) is None  # the known leader is not among them


def test_a_recreated_topic_drops_its_leader_epochs() -> None:
    cluster = watching({0: 2}, epoch=5)
    cluster.new_request()
    cluster.update(metadata({0: 1}, epoch=0, topic_id=Uuid(b"n" * 16)), NOW)

    assert cluster.leader_epoch(partition(0)) == 0
    assert cluster.topic_id(ORDERS) == b"n" * 16


def test_a_leader_from_a_fetch_error_is_used_if_newer() -> None:
    cluster = watching({0: 1, 1: 2})
    third = BrokerAddress(node_id=BrokerId(3), host="broker-3", port=9092)

    assert cluster.update_leader(partition(0), BrokerId(3), 1, [third])
    assert cluster.find_leader(partition(0)) == third
    assert not cluster.update_leader(partition(0), BrokerId(2), 1, [])
    assert not cluster.update_leader(partition(0), BrokerId(-1), 9, [])
    assert not cluster.update_leader(partition(1), BrokerId(8), 9, [])


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION"])
def test_a_fatal_topic_error_is_raised(code: str) -> None:
    cluster = watching({0: 1})
    cluster.new_request()
    cluster.update(failing(ErrorCode[code]), NOW)

    assert isinstance(cluster.error, BrokerResponseError)
    assert code in str(cluster.error)


def test_errors_of_unwatched_topics_are_ignored() -> None:
    cluster = watching({0: 1})
    cluster.watch(frozenset(), is_all=True)
    cluster.new_request()
    cluster.update(failing(ErrorCode.TOPIC_AUTHORIZATION_FAILED), NOW)

    assert cluster.error is None
    assert cluster.is_all_covered


def test_addresses_are_known_brokers_then_bootstrap_servers() -> None:
    cluster = cluster_of(bootstrap_servers="first:1,second:2")
    assert cluster.addresses() == [("first", 1), ("second", 2)]

    cluster.update(metadata({0: 1}), NOW)
    assert cluster.addresses() == [("broker-1", 9092), ("first", 1), ("second", 2)]
    nameless = replace(metadata({}).topics[0], name=None)
    cluster.update(MetadataResponse(topics=(nameless,)), NOW)
    assert cluster.topics == {}
