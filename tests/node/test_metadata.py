"""Metadata: who is here, which topics there are, and which appear by being asked for."""

from pathlib import Path
from typing import Any

import pytest

from kohort.types import Topic, Uuid
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.node.asking import Scene, name_of


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
def test_this_node_leads_every_partition(scene: Scene, version: int) -> None:
    scene.create("t", 2)

    answer = scene.answer(by_name("t"), version)

    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "node.example", 9092)
    assert answer.controller_id == 1
    assert answer.cluster_id == scene.catalog.cluster_id
    (topic,) = answer.topics
    assert (topic.name, topic.is_internal) == ("t", False)
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert (partition.leader_id, partition.error_code) == (1, 0)
        assert partition.replica_nodes == partition.isr_nodes == (1,)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
    if version >= 10:
        assert topic.topic_id == scene.id_of("t")


def test_null_asks_for_all_and_empty_for_none(scene: Scene) -> None:
    scene.create("a")
    scene.create("b")

    all_ = scene.answer(MetadataRequest(topics=None), 9)
    none = scene.answer(MetadataRequest(topics=()), 9)

    assert {"a", "b"} <= errors(all_).keys()
    assert none.topics == ()


def test_in_version_0_empty_asks_for_all(scene: Scene) -> None:
    scene.create("a")

    assert "a" in errors(scene.answer(MetadataRequest(topics=()), 0))


def test_the_nodes_own_topics_are_told_as_internal(scene: Scene) -> None:
    answer = scene.answer(by_name("__consumer_offsets"), 9)

    assert answer.topics[0].is_internal


def test_what_does_not_exist_is_told_with_what_it_could_be(scene: Scene) -> None:
    answer = scene.answer(by_name("missing", "no good"), 9)

    assert errors(answer) == {
        "missing": "UNKNOWN_TOPIC_OR_PARTITION",
        "no good": "INVALID_TOPIC_EXCEPTION",
    }
    assert scene.broker.topics.find(Topic("missing")) is None


# Asking makes topics


def test_asking_for_a_topic_makes_it_with_the_default_partitions(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"num.partitions": "3"})

    (topic,) = scene.answer(by_name("new", may_create=True), 9).topics

    assert (topic.error_code, len(topic.partitions)) == (0, 3)
    scene.close()


def test_versions_without_a_choice_may_make_topics(scene: Scene) -> None:
    assert errors(scene.answer(by_name("new", may_create=True), 3)) == {"new": "NONE"}


def test_nothing_is_made_where_the_node_forbids_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"auto.create.topics.enable": "false"})

    answer = scene.answer(by_name("new", may_create=True), 9)

    assert errors(answer) == {"new": "UNKNOWN_TOPIC_OR_PARTITION"}
    scene.close()


def test_a_topic_that_cannot_be_made_is_refused(scene: Scene) -> None:
    scene.create("a.b")

    answer = scene.answer(by_name("a_b", "no good", "", may_create=True), 9)

    assert set(errors(answer).values()) == {"INVALID_TOPIC_EXCEPTION"}


def test_asking_for_all_makes_nothing(scene: Scene) -> None:
    before = len(scene.broker.topics.all())

    scene.answer(MetadataRequest(topics=None), 9)

    assert len(scene.broker.topics.all()) == before


# By id


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_is_found_by_its_id(scene: Scene, version: int) -> None:
    scene.create("t")
    stranger = Uuid(b"\1" * 16)

    known, unknown = scene.answer(by_id(scene.id_of("t"), stranger), version).topics

    assert (known.name, known.error_code) == ("t", 0)
    assert (unknown.name, unknown.topic_id) == (None, stranger)
    assert name_of(unknown.error_code) == "UNKNOWN_TOPIC_ID"


@pytest.mark.parametrize("version", [10, 11])
def test_before_version_12_ids_are_not_looked_up(scene: Scene, version: int) -> None:
    scene.create("t")

    (topic,) = scene.answer(by_id(scene.id_of("t")), version).topics

    assert name_of(topic.error_code) == "INVALID_REQUEST"


# What may be done


def test_operations_are_told_to_whoever_asks(scene: Scene) -> None:
    scene.create("t")
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=Topic("t")),),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )

    asked, unasked = scene.answer(request, 10), scene.answer(by_name("t"), 10)

    assert asked.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert asked.cluster_authorized_operations == 0b1_1111_1010_0000
    assert unasked.topics[0].topic_authorized_operations == -(2**31)
    assert unasked.cluster_authorized_operations == -(2**31)
