"""What brokers have told of the cluster, what is believed of it, and when they are asked again."""

from dataclasses import replace
from typing import Any

import pytest

from kohort.client.backoff import Backoff
from kohort.client.errors import BrokerRefused
from kohort.client.member.effects import Broker
from kohort.client.network.cluster import Cluster
from kohort.client.options import read_options
from kohort.types import BrokerId, ErrorCode, Millis, Topic, Uuid
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tests.client.fetching import ORDERS, metadata, partition

NOW = Millis(10_000)
WANTED = frozenset((ORDERS,))


def cluster_of(**options: object) -> Cluster:
    given = {"retry_backoff_ms": 100, "metadata_max_age_ms": 5_000, **options}
    return Cluster(read_options(given.items()), Backoff(Millis(100), Millis(1_000), lambda: 0.5))


def watching(leaders: dict[int, int], **told: Any) -> Cluster:
    cluster = cluster_of()
    cluster.watch(WANTED, is_all=False)
    cluster.ask()
    cluster.learn(metadata(leaders, **told), NOW)
    return cluster


def failing(code: ErrorCode) -> MetadataResponse:
    return MetadataResponse(topics=(MetadataResponseTopic(name=ORDERS, error_code=code),))


# When to ask


def test_nothing_is_asked_while_nothing_is_wanted() -> None:
    assert cluster_of().due() is None


def test_what_is_wanted_is_asked_for_at_once_and_then_when_it_is_old() -> None:
    cluster = cluster_of()
    cluster.watch(WANTED, is_all=False)
    assert cluster.due() == 0

    question = cluster.ask()
    assert isinstance(question, MetadataRequest)
    assert [each.name for each in question.topics or ()] == [ORDERS]
    assert cluster.due() is None
    cluster.learn(metadata({0: 1}), NOW)

    assert cluster.due() == NOW + 5_000


def test_all_topics_are_asked_for_by_naming_none() -> None:
    cluster = cluster_of(allow_auto_create_topics=False)
    cluster.watch(frozenset(), is_all=True)

    question = cluster.ask()

    assert question.topics is None
    assert not question.allow_auto_topic_creation


def test_a_doubt_is_followed_by_a_question_but_not_at_once() -> None:
    cluster = watching({0: 1})
    cluster.doubt()

    assert cluster.due() == NOW + 100


def test_a_doubt_while_an_answer_is_on_its_way_waits_for_that() -> None:
    cluster = watching({0: 1})
    cluster.doubt()
    cluster.ask()
    cluster.doubt()
    cluster.learn(metadata({0: 1}), NOW)

    assert cluster.due() == NOW + 5_000


def test_what_is_missing_is_asked_for_again_more_and_more_seldom() -> None:
    cluster = watching({0: 1})
    due = []
    for _ in range(6):
        cluster.ask()
        cluster.learn(failing(ErrorCode.LEADER_NOT_AVAILABLE), NOW)
        due.append((cluster.due() or 0) - NOW)

    assert due == [100, 200, 400, 800, 1_000, 1_000]


def test_a_partition_without_a_leader_is_missing() -> None:
    cluster = watching({0: 1, 1: -1})

    assert cluster.find_leader(partition(0)) == Broker(
        node_id=BrokerId(1), host="broker-1", port=9092
    )
    assert cluster.find_leader(partition(1)) is None
    assert cluster.due() == NOW + 100


def test_nobody_answering_is_a_reason_to_ask_again() -> None:
    cluster = watching({0: 1})
    cluster.ask()
    cluster.miss(NOW)

    assert cluster.due() == NOW + 100


def test_a_topic_that_is_new_is_asked_for_at_once_and_known_to_be_missing_then() -> None:
    cluster = watching({0: 1})
    both = WANTED | {Topic("refunds")}
    cluster.watch(both, is_all=False)
    assert cluster.due() == 0
    assert not cluster.covers(both)

    cluster.ask()
    cluster.learn(metadata({0: 1}), NOW)

    assert cluster.covers(both)
    assert cluster.partition_counts(both) == {ORDERS: 1}


def test_an_answer_to_an_older_question_does_not_cover_what_came_after() -> None:
    cluster = watching({0: 1})
    cluster.ask()
    cluster.watch(frozenset((Topic("refunds"),)), is_all=False)
    cluster.learn(metadata({0: 1}), NOW)

    assert not cluster.covers(frozenset((Topic("refunds"),)))
    assert cluster.due() == 0


# What is believed


def test_a_broker_that_lags_behind_does_not_bring_back_an_old_leader() -> None:
    cluster = watching({0: 2}, epoch=5)
    cluster.ask()
    cluster.learn(metadata({0: 1}, epoch=4), NOW)

    assert cluster.leader_epoch(partition(0)) == 5
    assert cluster.find_leader(partition(0)) is None  # the one that is known is not among them


def test_a_topic_that_was_made_anew_begins_anew() -> None:
    cluster = watching({0: 2}, epoch=5)
    cluster.ask()
    cluster.learn(metadata({0: 1}, epoch=0, topic_id=Uuid(b"n" * 16)), NOW)

    assert cluster.leader_epoch(partition(0)) == 0
    assert cluster.topic_id(ORDERS) == b"n" * 16


def test_a_leader_that_is_told_in_passing_is_believed_if_it_is_newer() -> None:
    cluster = watching({0: 1, 1: 2})
    third = Broker(node_id=BrokerId(3), host="broker-3", port=9092)

    assert cluster.hear_of_leader(partition(0), BrokerId(3), 1, [third])
    assert cluster.find_leader(partition(0)) == third
    assert not cluster.hear_of_leader(partition(0), BrokerId(2), 1, [])
    assert not cluster.hear_of_leader(partition(0), BrokerId(-1), 9, [])
    assert not cluster.hear_of_leader(partition(1), BrokerId(8), 9, [])


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION"])
def test_what_cannot_be_mended_by_asking_again_is_a_fault(code: str) -> None:
    cluster = watching({0: 1})
    cluster.ask()
    cluster.learn(failing(ErrorCode[code]), NOW)

    assert isinstance(cluster.fault, BrokerRefused)
    assert code in str(cluster.fault)


def test_what_nobody_wants_may_be_as_faulty_as_it_likes() -> None:
    cluster = watching({0: 1})
    cluster.watch(frozenset(), is_all=True)
    cluster.ask()
    cluster.learn(failing(ErrorCode.TOPIC_AUTHORIZATION_FAILED), NOW)

    assert cluster.fault is None
    assert cluster.is_all_covered


def test_any_broker_is_one_that_is_known_or_else_one_to_begin_with() -> None:
    cluster = cluster_of(bootstrap_servers="first:1,second:2")
    assert cluster.addresses() == [("first", 1), ("second", 2)]

    cluster.learn(metadata({0: 1}), NOW)
    assert cluster.addresses() == [("broker-1", 9092), ("first", 1), ("second", 2)]
    nameless = replace(metadata({}).topics[0], name=None)
    cluster.learn(MetadataResponse(topics=(nameless,)), NOW)
    assert cluster.topics == {}
