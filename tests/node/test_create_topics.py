"""CreateTopics, CreatePartitions and DeleteTopics, and their effect on groups."""

from pathlib import Path
from typing import Any

import pytest

from kohort.coordinator.commands import CommitOffsets, FetchOffsets, OffsetToCommit
from kohort.coordinator.replies import OffsetsFetched
from kohort.node.broker import Broker
from kohort.node.config import BrokerConfig
from kohort.node.topics import Topics
from kohort.types import (
    ZERO_UUID,
    BrokerId,
    ErrorCode,
    GroupId,
    Millis,
    Offset,
    Partition,
    Topic,
    Uuid,
)
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
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
from tests.log.faulty_disks import CrashingDisk, MemoryDisk
from tests.node.broker_harness import (
    BrokerHarness,
    HarnessClock,
    ReplyCollector,
    name_of,
    new_batch,
    values_in,
)


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


def create_error(harness: BrokerHarness, topic: CreatableTopic) -> str:
    (result,) = harness.answer(CreateTopicsRequest(topics=(topic,)), 7).topics
    if result.error_code:
        assert result.error_message
    return name_of(result.error_code)


# CreateTopics


@pytest.mark.parametrize("version", range(2, 8))
def test_created_topic_is_returned_and_listed(harness: BrokerHarness, version: int) -> None:
    (result,) = harness.answer(CreateTopicsRequest(topics=(new(partitions=3),)), version).topics

    topic = harness.broker.topics.find(Topic("t"))
    assert topic is not None
    assert topic.partition_count == 3
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert {each.name for each in result.configs} >= {"cleanup.policy", "retention.ms"}
    if version >= 7:
        assert result.topic_id == topic.topic_id != ZERO_UUID


def test_created_topic_has_settings_with_sources(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"log.retention.ms": "5000"})
    config = CreatableTopicConfig(name="cleanup.policy", value="compact")

    (result,) = harness.answer(CreateTopicsRequest(topics=(new(configs=(config,)),)), 7).topics

    returned = {each.name: (each.value, each.config_source) for each in result.configs}
    assert returned["cleanup.policy"] == ("compact", 1)
    assert returned["retention.ms"] == ("5000", 4)
    assert returned["segment.bytes"] == ("1073741824", 5)
    assert "internal.segment.bytes" not in returned
    harness.close()


def test_topic_and_settings_survive_a_restart(harness: BrokerHarness) -> None:
    harness.create("t", 2, max_message_bytes="77")
    topic_id = harness.id_of("t")

    harness.restart()

    topic = harness.broker.topics.find(Topic("t"))
    assert topic is not None
    assert (topic.topic_id, topic.partition_count) == (topic_id, 2)
    assert topic.settings == {"max.message.bytes": "77"}


def test_validate_only_creates_nothing(harness: BrokerHarness) -> None:
    answer = harness.answer(CreateTopicsRequest(topics=(new(),), validate_only=True), 7)

    (result,) = answer.topics
    assert (result.error_code, result.num_partitions) == (0, 1)
    assert harness.broker.topics.find(Topic("t")) is None


def test_minus_one_selects_the_defaults(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"num.partitions": "4"})

    (result,) = harness.answer(
        CreateTopicsRequest(topics=(new(partitions=-1, replicas=-1),)), 7
    ).topics

    assert (result.num_partitions, result.replication_factor) == (4, 1)
    harness.close()


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
def test_invalid_topics_are_refused(
    harness: BrokerHarness, topic: CreatableTopic, error: str
) -> None:
    assert create_error(harness, topic) == error


def test_topic_already_exists_is_checked_first(harness: BrokerHarness) -> None:
    harness.create("t")

    assert create_error(harness, new(replicas=3)) == "TOPIC_ALREADY_EXISTS"


def test_names_that_differ_in_dot_and_underscore_collide(harness: BrokerHarness) -> None:
    harness.create("a.b")

    assert create_error(harness, new("a_b")) == "INVALID_TOPIC_EXCEPTION"
    assert create_error(harness, new("a-b")) == "NONE"
    harness.answer(DeleteTopicsRequest(topic_names=(Topic("a.b"),)), 5)
    assert create_error(harness, new("a_b")) == "NONE"


def test_duplicate_topic_in_a_request_is_not_created(harness: BrokerHarness) -> None:
    answer = harness.answer(CreateTopicsRequest(topics=(new("t"), new("u"), new("t"))), 7)

    errors = {result.name: name_of(result.error_code) for result in answer.topics}
    assert errors == {"t": "INVALID_REQUEST", "u": "NONE"}
    assert len(answer.topics) == 2


# CreatePartitions


def grow(harness: BrokerHarness, count: int, name: str = "t", **facts: Any) -> str:
    validate_only = facts.pop("validate_only", False)
    topic = CreatePartitionsTopic(name=Topic(name), count=count, **{"assignments": None, **facts})
    request = CreatePartitionsRequest(topics=(topic,), validate_only=validate_only)
    return name_of(harness.answer(request, 3).results[0].error_code)


def test_added_partitions_accept_records(harness: BrokerHarness) -> None:
    harness.create("t")

    assert grow(harness, 3) == "NONE"

    harness.produce(new_batch("a"), partition=2)
    harness.restart()
    assert values_in(harness.fetch(partition=2).records) == ["a"]


def test_validate_only_adds_no_partitions(harness: BrokerHarness) -> None:
    harness.create("t")

    assert grow(harness, 3, validate_only=True) == "NONE"

    assert not harness.broker.topics.has(Topic("t"), Partition(1))


def test_number_of_partitions_cannot_decrease(harness: BrokerHarness) -> None:
    harness.create("t", 2)

    assert grow(harness, 2) == "INVALID_PARTITIONS"
    assert grow(harness, 1) == "INVALID_PARTITIONS"
    assert grow(harness, 2, name="missing") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert grow(harness, 9, name="__consumer_offsets") == "INVALID_PARTITIONS"


def test_manual_assignment_of_new_partitions_must_name_this_broker(harness: BrokerHarness) -> None:
    def on(*nodes: int) -> tuple[CreatePartitionsAssignment, ...]:
        return tuple(CreatePartitionsAssignment(broker_ids=(BrokerId(node),)) for node in nodes)

    harness.create("t")

    assert grow(harness, 3, assignments=on(1)) == "INVALID_REPLICA_ASSIGNMENT"
    assert grow(harness, 2, assignments=on(2)) == "INVALID_REPLICA_ASSIGNMENT"
    assert grow(harness, 3, assignments=on(1, 1)) == "NONE"


def test_duplicate_topic_in_create_partitions_is_refused(harness: BrokerHarness) -> None:
    harness.create("t")
    topic = CreatePartitionsTopic(name=Topic("t"), count=2, assignments=None)

    (result,) = harness.answer(CreatePartitionsRequest(topics=(topic, topic)), 3).results

    assert name_of(result.error_code) == "INVALID_REQUEST"


# DeleteTopics


@pytest.mark.parametrize("version", range(1, 6))
def test_topic_is_deleted_by_name(harness: BrokerHarness, version: int) -> None:
    harness.create("t")
    names = (Topic("t"), Topic("missing"))

    answer = harness.answer(DeleteTopicsRequest(topic_names=names), version)

    errors = {result.name: name_of(result.error_code) for result in answer.responses}
    assert errors == {"t": "NONE", "missing": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert harness.broker.topics.find(Topic("t")) is None


def test_topic_is_deleted_by_name_or_id_but_not_by_both(harness: BrokerHarness) -> None:
    for name in "abc":
        harness.create(name)
    foreign = Uuid(b"\1" * 16)
    asked = (
        DeleteTopicState(name=Topic("a")),
        DeleteTopicState(topic_id=harness.id_of("b")),
        DeleteTopicState(name=Topic("c"), topic_id=harness.id_of("c")),
        DeleteTopicState(),
        DeleteTopicState(topic_id=foreign),
    )
    id_of_b = harness.id_of("b")

    responses = harness.answer(DeleteTopicsRequest(topics=asked), 6).responses

    errors = [name_of(result.error_code) for result in responses]
    assert errors == ["NONE", "NONE", "INVALID_REQUEST", "INVALID_REQUEST", "UNKNOWN_TOPIC_ID"]
    assert (responses[1].name, responses[1].topic_id) == ("b", id_of_b)
    assert harness.broker.topics.find(Topic("c")) is not None


def test_topic_in_a_request_by_name_and_by_id_is_not_deleted(harness: BrokerHarness) -> None:
    harness.create("t")
    asked = (DeleteTopicState(name=Topic("t")), DeleteTopicState(topic_id=harness.id_of("t")))

    responses = harness.answer(DeleteTopicsRequest(topics=asked), 6).responses

    assert [name_of(each.error_code) for each in responses] == ["INVALID_REQUEST"]
    assert harness.broker.topics.find(Topic("t")) is not None


@pytest.mark.parametrize(
    ("version", "error"), [(2, "INVALID_REQUEST"), (5, "TOPIC_DELETION_DISABLED")]
)
def test_delete_topic_enable_false_forbids_deletion(
    tmp_path: Path, version: int, error: str
) -> None:
    harness = BrokerHarness(tmp_path, {"delete.topic.enable": "false"})
    harness.create("t")

    (result,) = harness.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), version).responses

    assert name_of(result.error_code) == error
    assert harness.broker.topics.find(Topic("t")) is not None
    harness.close()


def test_consumer_offsets_cannot_be_deleted(harness: BrokerHarness) -> None:
    names = (Topic("__consumer_offsets"),)

    (result,) = harness.answer(DeleteTopicsRequest(topic_names=names), 5).responses

    assert name_of(result.error_code) == "INVALID_TOPIC_EXCEPTION"


def test_recreated_topic_has_a_new_id(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(new_batch("old"))
    old_id = harness.id_of("t")

    harness.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)
    harness.create("t")

    assert harness.id_of("t") != old_id
    assert harness.fetch().high_watermark == 0


def commit(broker: Broker, now: Millis) -> None:
    offset = OffsetToCommit(topic=Topic("t"), partition=Partition(0), offset=Offset(5))
    ticket = broker.groups.open(ReplyCollector())
    command = CommitOffsets(ticket=ticket, group_id=GroupId("g"), offsets=(offset,))
    broker.groups.submit(command, now)


def committed(broker: Broker, now: Millis) -> list[int]:
    inbox = ReplyCollector()
    ticket = broker.groups.open(inbox)
    broker.groups.submit(FetchOffsets(ticket=ticket, group_id=GroupId("g")), now)
    (reply,) = inbox.replies
    assert isinstance(reply, OffsetsFetched)
    return [each.offset for each in reply.offsets]


def test_deleting_a_topic_removes_its_committed_offsets(harness: BrokerHarness) -> None:
    harness.create("t")
    commit(harness.broker, harness.now)
    assert committed(harness.broker, harness.now) == [5]

    harness.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)

    assert committed(harness.broker, harness.now) == []


def test_offsets_of_a_topic_deleted_during_loading_are_removed_afterwards(
    harness: BrokerHarness,
) -> None:
    harness.create("t")
    commit(harness.broker, harness.now)
    settings = BrokerConfig()
    loading = Broker(settings, Topics(harness.catalog, settings), None)
    steps = loading.load_groups(HarnessClock(harness))
    next(steps)

    loading.delete_topics([harness.get_topic("t")], harness.now)
    for _ in steps:
        pass

    assert committed(loading, harness.now) == []


def test_topics_of_one_request_are_one_change_of_the_catalog() -> None:
    disk = CrashingDisk(MemoryDisk())
    harness = BrokerHarness(disk)
    topics = tuple(new(f"t{each}", 20) for each in range(50))
    before = disk.changes

    created = harness.answer(CreateTopicsRequest(topics=topics), 7).topics
    asked = tuple(MetadataRequestTopic(name=Topic(f"u{each}")) for each in range(50))
    found = harness.answer(MetadataRequest(topics=asked), 9).topics
    names = tuple(topic.name for topic in (*created, *found))
    deleted = harness.answer(DeleteTopicsRequest(topic_names=names), 5).responses

    assert {each.error_code for each in (*created, *found, *deleted)} == {0}
    # An append and a sync for each of the three requests.
    assert disk.changes - before == 6


def test_colliding_names_in_one_request_are_refused(harness: BrokerHarness) -> None:
    topics = (new("a.b"), new("a_b"), new("c"))

    created = harness.answer(CreateTopicsRequest(topics=topics), 7).topics

    assert [each.error_code for each in created] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
