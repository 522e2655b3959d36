"""Metadata: brokers, topics and topic creation on demand."""

from pathlib import Path
from typing import Any

import pytest

from kohort.types import Topic, Uuid
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.node.broker_harness import BrokerHarness, name_of


def by_name(*names: str, may_create: bool = False) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=Topic(name)) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)


def by_id(*ids: Uuid) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(topic_id=each, name=None) for each in ids)
    )


def errors(answer: Any) -> dict[str, str]:
    return {topic.name: name_of(topic.error_code) for topic in answer.topics}


@pytest.mark.parametrize("version", range(4, 14))
def test_this_broker_leads_every_partition(harness: BrokerHarness, version: int) -> None:
    harness.create("t", 2)

    answer = harness.answer(by_name("t"), version)

    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "node.example", 9092)
    assert answer.controller_id == 1
    assert answer.cluster_id == harness.catalog.cluster_id
    (topic,) = answer.topics
    assert (topic.name, topic.is_internal) == ("t", False)
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert (partition.leader_id, partition.error_code) == (1, 0)
        assert partition.replica_nodes == partition.isr_nodes == (1,)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
    if version >= 10:
        assert topic.topic_id == harness.id_of("t")


def test_null_selects_all_topics_and_empty_none(harness: BrokerHarness) -> None:
    harness.create("a")
    harness.create("b")

    all_ = harness.answer(MetadataRequest(topics=None), 9)
    none = harness.answer(MetadataRequest(topics=()), 9)

    assert {"a", "b"} <= errors(all_).keys()
    assert none.topics == ()


def test_empty_list_selects_all_topics_in_version_0(harness: BrokerHarness) -> None:
    harness.create("a")

    assert "a" in errors(harness.answer(MetadataRequest(topics=()), 0))


def test_internal_topics_are_marked_internal(harness: BrokerHarness) -> None:
    answer = harness.answer(by_name("__consumer_offsets"), 9)

    assert answer.topics[0].is_internal


def test_unknown_and_invalid_topics_have_different_errors(harness: BrokerHarness) -> None:
    answer = harness.answer(by_name("missing", "no good"), 9)

    assert errors(answer) == {
        "missing": "UNKNOWN_TOPIC_OR_PARTITION",
        "no good": "INVALID_TOPIC_EXCEPTION",
    }
    assert harness.broker.topics.find(Topic("missing")) is None


# Asking makes topics


def test_metadata_request_creates_a_topic_with_default_partitions(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"num.partitions": "3"})

    (topic,) = harness.answer(by_name("new", may_create=True), 9).topics

    assert (topic.error_code, len(topic.partitions)) == (0, 3)
    harness.close()


def test_old_versions_may_create_topics(harness: BrokerHarness) -> None:
    assert errors(harness.answer(by_name("new", may_create=True), 3)) == {"new": "NONE"}


def test_auto_create_topics_enable_false_creates_nothing(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"auto.create.topics.enable": "false"})

    answer = harness.answer(by_name("new", may_create=True), 9)

    assert errors(answer) == {"new": "UNKNOWN_TOPIC_OR_PARTITION"}
    harness.close()


def test_topic_that_cannot_be_created_is_refused(harness: BrokerHarness) -> None:
    harness.create("a.b")

    answer = harness.answer(by_name("a_b", "no good", "", may_create=True), 9)

    assert set(errors(answer).values()) == {"INVALID_TOPIC_EXCEPTION"}


def test_metadata_of_all_topics_creates_nothing(harness: BrokerHarness) -> None:
    before = len(harness.broker.topics.all())

    harness.answer(MetadataRequest(topics=None), 9)

    assert len(harness.broker.topics.all()) == before


# By id


@pytest.mark.parametrize("version", [12, 13])
def test_topic_is_found_by_id(harness: BrokerHarness, version: int) -> None:
    harness.create("t")
    foreign = Uuid(b"\1" * 16)

    known, unknown = harness.answer(by_id(harness.id_of("t"), foreign), version).topics

    assert (known.name, known.error_code) == ("t", 0)
    assert (unknown.name, unknown.topic_id) == (None, foreign)
    assert name_of(unknown.error_code) == "UNKNOWN_TOPIC_ID"


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_ignored_before_version_12(harness: BrokerHarness, version: int) -> None:
    harness.create("t")

    (topic,) = harness.answer(by_id(harness.id_of("t")), version).topics

    assert name_of(topic.error_code) == "INVALID_REQUEST"


# What may be done


def test_authorized_operations_are_returned_on_request(harness: BrokerHarness) -> None:
    harness.create("t")
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=Topic("t")),),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )

    asked, unasked = harness.answer(request, 10), harness.answer(by_name("t"), 10)

    assert asked.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert asked.cluster_authorized_operations == 0b1_1111_1010_0000
    assert unasked.topics[0].topic_authorized_operations == -(2**31)
    assert unasked.cluster_authorized_operations == -(2**31)
