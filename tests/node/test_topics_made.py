"""CreateTopics, CreatePartitions and DeleteTopics: what may be, and what the rest hears of it."""

from pathlib import Path
from typing import Any

import pytest

from kohort.coordinator.commands import CommitOffsets, FetchOffsets, OffsetToCommit
from kohort.coordinator.replies import OffsetsFetched, Reply
from kohort.node.broker import Broker
from kohort.node.config import Settings
from kohort.node.topics import Topics
from kohort.types import ZERO_UUID, BrokerId, GroupId, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.api.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.api.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.node.asking import Scene, name_of, new_batch, values_in


def new(name: str = "t", partitions: int = 1, replicas: int = 1, **facts: Any) -> CreatableTopic:
    return CreatableTopic(
        name=Topic(name), num_partitions=partitions, replication_factor=replicas, **facts
    )


def placed(*assignments: tuple[int, tuple[int, ...]]) -> CreatableTopic:
    return new(
        partitions=-1,
        replicas=-1,
        assignments=tuple(
            CreatableReplicaAssignment(
                partition_index=Partition(index), broker_ids=tuple(map(BrokerId, nodes))
            )
            for index, nodes in assignments
        ),
    )


def create_error(scene: Scene, topic: CreatableTopic) -> str:
    (result,) = scene.answer(CreateTopicsRequest(topics=(topic,)), 7).topics
    if result.error_code:
        assert result.error_message
    return name_of(result.error_code)


# CreateTopics


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_made_and_told_about(scene: Scene, version: int) -> None:
    (result,) = scene.answer(CreateTopicsRequest(topics=(new(partitions=3),)), version).topics

    topic = scene.broker.topics.find(Topic("t"))
    assert topic is not None
    assert topic.partition_count == 3
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert {each.name for each in result.configs} >= {"cleanup.policy", "retention.ms"}
    if version >= 7:
        assert result.topic_id == topic.topic_id != ZERO_UUID


def test_the_settings_told_say_where_they_are_from(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"log.retention.ms": "5000"})
    config = CreatableTopicConfig(name="cleanup.policy", value="compact")

    (result,) = scene.answer(CreateTopicsRequest(topics=(new(configs=(config,)),)), 7).topics

    told = {each.name: (each.value, each.config_source) for each in result.configs}
    assert told["cleanup.policy"] == ("compact", 1)
    assert told["retention.ms"] == ("5000", 4)
    assert told["segment.bytes"] == ("1073741824", 5)
    assert "internal.segment.bytes" not in told
    scene.close()


def test_a_topic_outlives_a_restart_with_its_settings(scene: Scene) -> None:
    scene.create("t", 2, max_message_bytes="77")
    topic_id = scene.id_of("t")

    scene.restart()

    topic = scene.broker.topics.find(Topic("t"))
    assert topic is not None
    assert (topic.topic_id, topic.partition_count) == (topic_id, 2)
    assert topic.settings == {"max.message.bytes": "77"}


def test_validating_makes_nothing(scene: Scene) -> None:
    answer = scene.answer(CreateTopicsRequest(topics=(new(),), validate_only=True), 7)

    (result,) = answer.topics
    assert (result.error_code, result.num_partitions) == (0, 1)
    assert scene.broker.topics.find(Topic("t")) is None


def test_minus_one_takes_the_defaults(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"num.partitions": "4"})

    (result,) = scene.answer(
        CreateTopicsRequest(topics=(new(partitions=-1, replicas=-1),)), 7
    ).topics

    assert (result.num_partitions, result.replication_factor) == (4, 1)
    scene.close()


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (new("no good"), "INVALID_TOPIC_EXCEPTION"),
        (new(""), "INVALID_TOPIC_EXCEPTION"),
        (new(".."), "INVALID_TOPIC_EXCEPTION"),
        (new("x" * 250), "INVALID_TOPIC_EXCEPTION"),
        (new(partitions=0), "INVALID_PARTITIONS"),
        (new(partitions=-2), "INVALID_PARTITIONS"),
        (new(partitions=10_001), "POLICY_VIOLATION"),
        (new(replicas=3), "INVALID_REPLICATION_FACTOR"),
        (new(replicas=0), "INVALID_REPLICATION_FACTOR"),
        (new(configs=(CreatableTopicConfig(name="colour", value="red"),)), "INVALID_CONFIG"),
        (new(configs=(CreatableTopicConfig(name="retention.ms", value="x"),)), "INVALID_CONFIG"),
        (new(configs=(CreatableTopicConfig(name="retention.ms", value=None),)), "INVALID_CONFIG"),
        (placed((0, (1,)), (1, (1,))), "NONE"),
        (placed((0, (1,)), (2, (1,))), "INVALID_REPLICA_ASSIGNMENT"),
        (placed((0, (1,)), (0, (1,))), "INVALID_REPLICA_ASSIGNMENT"),
        (placed((0, (2,))), "INVALID_REPLICA_ASSIGNMENT"),
        (placed((0, (1, 1))), "INVALID_REPLICA_ASSIGNMENT"),
        (placed((0, ())), "INVALID_REPLICA_ASSIGNMENT"),
        (
            new(assignments=(CreatableReplicaAssignment(broker_ids=(BrokerId(1),)),)),
            "INVALID_REQUEST",
        ),
    ],
)
def test_what_cannot_be_made_is_refused(scene: Scene, topic: CreatableTopic, error: str) -> None:
    assert create_error(scene, topic) == error


def test_that_a_topic_exists_is_said_before_anything_else(scene: Scene) -> None:
    scene.create("t")

    assert create_error(scene, new(replicas=3)) == "TOPIC_ALREADY_EXISTS"


def test_a_dot_and_an_underscore_count_as_the_same(scene: Scene) -> None:
    scene.create("a.b")

    assert create_error(scene, new("a_b")) == "INVALID_TOPIC_EXCEPTION"
    assert create_error(scene, new("a-b")) == "NONE"
    scene.answer(DeleteTopicsRequest(topic_names=(Topic("a.b"),)), 5)
    assert create_error(scene, new("a_b")) == "NONE"


def test_a_topic_named_twice_is_made_not_even_once(scene: Scene) -> None:
    answer = scene.answer(CreateTopicsRequest(topics=(new("t"), new("u"), new("t"))), 7)

    errors = {result.name: name_of(result.error_code) for result in answer.topics}
    assert errors == {"t": "INVALID_REQUEST", "u": "NONE"}
    assert len(answer.topics) == 2


# CreatePartitions


def grow(scene: Scene, count: int, name: str = "t", **facts: Any) -> str:
    validate_only = facts.pop("validate_only", False)
    topic = CreatePartitionsTopic(name=Topic(name), count=count, **{"assignments": None, **facts})
    request = CreatePartitionsRequest(topics=(topic,), validate_only=validate_only)
    return name_of(scene.answer(request, 3).results[0].error_code)


def test_a_topic_grows_and_its_new_partitions_take_records(scene: Scene) -> None:
    scene.create("t")

    assert grow(scene, 3) == "NONE"

    scene.produce(new_batch("a"), partition=2)
    scene.restart()
    assert values_in(scene.fetch(partition=2).records) == ["a"]


def test_validating_growth_changes_nothing(scene: Scene) -> None:
    scene.create("t")

    assert grow(scene, 3, validate_only=True) == "NONE"

    assert not scene.broker.topics.has(Topic("t"), Partition(1))


def test_partitions_only_become_more(scene: Scene) -> None:
    scene.create("t", 2)

    assert grow(scene, 2) == "INVALID_PARTITIONS"
    assert grow(scene, 1) == "INVALID_PARTITIONS"
    assert grow(scene, 2, name="missing") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert grow(scene, 9, name="__consumer_offsets") == "INVALID_PARTITIONS"


def test_new_partitions_placed_by_hand_are_placed_here(scene: Scene) -> None:
    def on(*nodes: int) -> tuple[CreatePartitionsAssignment, ...]:
        return tuple(CreatePartitionsAssignment(broker_ids=(BrokerId(node),)) for node in nodes)

    scene.create("t")

    assert grow(scene, 3, assignments=on(1)) == "INVALID_REPLICA_ASSIGNMENT"
    assert grow(scene, 2, assignments=on(2)) == "INVALID_REPLICA_ASSIGNMENT"
    assert grow(scene, 3, assignments=on(1, 1)) == "NONE"


def test_growing_a_topic_twice_in_one_request_is_refused(scene: Scene) -> None:
    scene.create("t")
    topic = CreatePartitionsTopic(name=Topic("t"), count=2, assignments=None)

    (result,) = scene.answer(CreatePartitionsRequest(topics=(topic, topic)), 3).results

    assert name_of(result.error_code) == "INVALID_REQUEST"


# DeleteTopics


@pytest.mark.parametrize("version", range(1, 6))
def test_a_topic_is_deleted_by_name(scene: Scene, version: int) -> None:
    scene.create("t")
    names = (Topic("t"), Topic("missing"))

    answer = scene.answer(DeleteTopicsRequest(topic_names=names), version)

    errors = {result.name: name_of(result.error_code) for result in answer.responses}
    assert errors == {"t": "NONE", "missing": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert scene.broker.topics.find(Topic("t")) is None


def test_a_topic_is_deleted_by_name_or_id_but_not_by_both(scene: Scene) -> None:
    for name in "abc":
        scene.create(name)
    stranger = Uuid(b"\1" * 16)
    asked = (
        DeleteTopicState(name=Topic("a")),
        DeleteTopicState(topic_id=scene.id_of("b")),
        DeleteTopicState(name=Topic("c"), topic_id=scene.id_of("c")),
        DeleteTopicState(),
        DeleteTopicState(topic_id=stranger),
    )
    id_of_b = scene.id_of("b")

    responses = scene.answer(DeleteTopicsRequest(topics=asked), 6).responses

    errors = [name_of(result.error_code) for result in responses]
    assert errors == ["NONE", "NONE", "INVALID_REQUEST", "INVALID_REQUEST", "UNKNOWN_TOPIC_ID"]
    assert (responses[1].name, responses[1].topic_id) == ("b", id_of_b)
    assert scene.broker.topics.find(Topic("c")) is not None


def test_a_topic_named_in_two_ways_is_not_deleted(scene: Scene) -> None:
    scene.create("t")
    asked = (DeleteTopicState(name=Topic("t")), DeleteTopicState(topic_id=scene.id_of("t")))

    responses = scene.answer(DeleteTopicsRequest(topics=asked), 6).responses

    assert [name_of(each.error_code) for each in responses] == ["INVALID_REQUEST"]
    assert scene.broker.topics.find(Topic("t")) is not None


@pytest.mark.parametrize(
    ("version", "error"), [(2, "INVALID_REQUEST"), (5, "TOPIC_DELETION_DISABLED")]
)
def test_the_node_may_forbid_deleting(tmp_path: Path, version: int, error: str) -> None:
    scene = Scene(tmp_path, {"delete.topic.enable": "false"})
    scene.create("t")

    (result,) = scene.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), version).responses

    assert name_of(result.error_code) == error
    assert scene.broker.topics.find(Topic("t")) is not None
    scene.close()


def test_where_groups_are_kept_stays(scene: Scene) -> None:
    names = (Topic("__consumer_offsets"),)

    (result,) = scene.answer(DeleteTopicsRequest(topic_names=names), 5).responses

    assert name_of(result.error_code) == "INVALID_TOPIC_EXCEPTION"


def test_a_topic_made_again_is_another_one(scene: Scene) -> None:
    scene.create("t")
    scene.produce(new_batch("old"))
    old_id = scene.id_of("t")

    scene.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)
    scene.create("t")

    assert scene.id_of("t") != old_id
    assert scene.fetch().high_watermark == 0


def commit(broker: Broker, now: Millis) -> None:
    offset = OffsetToCommit(topic=Topic("t"), partition=Partition(0), offset=Offset(5))
    ticket = broker.groups.issue(lambda _: None)
    command = CommitOffsets(ticket=ticket, group_id=GroupId("g"), offsets=(offset,))
    broker.groups.submit(command, now)


def committed(broker: Broker, now: Millis) -> list[int]:
    replies: list[Reply] = []
    ticket = broker.groups.issue(replies.append)
    broker.groups.submit(FetchOffsets(ticket=ticket, group_id=GroupId("g")), now)
    assert isinstance(replies[0], OffsetsFetched)
    return [each.offset for each in replies[0].offsets]


def test_groups_forget_a_topic_that_is_deleted(scene: Scene) -> None:
    scene.create("t")
    commit(scene.broker, scene.now)
    assert committed(scene.broker, scene.now) == [5]

    scene.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)

    assert committed(scene.broker, scene.now) == []


def test_a_topic_deleted_while_groups_load_is_forgotten_afterwards(scene: Scene) -> None:
    scene.create("t")
    commit(scene.broker, scene.now)
    settings = Settings()
    loading = Broker(settings, Topics(scene.catalog, settings), None)
    steps = loading.load_groups(lambda: scene.now)
    next(steps)

    loading.delete_topic(Topic("t"), scene.id_of("t"), scene.now)
    for _ in steps:
        pass

    assert committed(loading, scene.now) == []
