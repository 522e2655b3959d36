"""kafka-topics: create, describe, alter and delete topics."""

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.tool_output import Row, read_pairs
from tests.wait import wait_until


def describe(cluster: Cluster, *what: str) -> list[Row]:
    ended = cluster.run("kafka-topics", "--describe", *what)
    return [read_pairs(line) for line in ended.lines]


def overrides(row: Row) -> Row:
    """The settings of a topic that differ from the cluster's."""
    pairs = [pair.partition("=") for pair in row["Configs"].split(",") if pair]
    of_the_cluster = {"min.insync.replicas", "file.delete.delay.ms"}
    return {name: text for name, _, text in pairs if name not in of_the_cluster}


def list_topics(cluster: Cluster, *what: str) -> set[str]:
    return set(cluster.run("kafka-topics", "--list", *what).lines)


def test_a_new_topic_is_described_as_created(cluster: Cluster) -> None:
    settings = ("--config", "retention.ms=86400000", "--config", "cleanup.policy=delete")

    topic = cluster.create_topic(3, "--replication-factor", "1", *settings)
    head, *partitions = describe(cluster, "--topic", topic)

    assert head["Topic"] == topic
    assert (head["PartitionCount"], head["ReplicationFactor"]) == ("3", "1")
    assert overrides(head) == {"retention.ms": "86400000", "cleanup.policy": "delete"}
    assert [row["Partition"] for row in partitions] == ["0", "1", "2"]
    assert {(row["Leader"], row["Replicas"], row["Isr"]) for row in partitions} == {("1", "1", "1")}
    assert topic in list_topics(cluster)


def test_a_topic_is_found_by_its_id(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    head, *_ = describe(cluster, "--topic", topic)

    found, *partitions = describe(cluster, "--topic-id", head["TopicId"])

    assert (found["Topic"], found["TopicId"]) == (topic, head["TopicId"])
    assert len(partitions) == 2


def test_topics_are_selected_by_a_pattern(cluster: Cluster) -> None:
    word = cluster.unique_name("pattern")
    for ending in ("a", "b", "c"):
        cluster.run("kafka-topics", "--create", "--topic", f"{word}.{ending}")

    listed = list_topics(cluster, "--topic", f"{word}.[ab]")
    described = describe(cluster, "--topic", f"{word}.*")

    assert listed == {f"{word}.a", f"{word}.b"}
    assert {row["Topic"] for row in described} == {f"{word}.{ending}" for ending in "abc"}


def test_partitions_can_be_added_and_not_removed(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)

    cluster.run("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    refused = cluster.run_unchecked(
        "kafka-topics", "--alter", "--topic", topic, "--partitions", "4"
    )

    head, *partitions = describe(cluster, "--topic", topic)
    assert head["PartitionCount"] == f"{len(partitions)}" == "5"
    assert refused.code == 1
    assert "InvalidPartitionsException" in refused.err


def test_a_deleted_topic_is_not_listed(cluster: Cluster) -> None:
    topic, other = cluster.create_topic(), cluster.create_topic()

    cluster.run("kafka-topics", "--delete", "--topic", topic)
    wait_until(lambda: topic not in list_topics(cluster), 10, f"{topic} is gone")
    again = cluster.run_unchecked("kafka-topics", "--delete", "--topic", topic)
    anyway = cluster.run_unchecked("kafka-topics", "--delete", "--topic", topic, "--if-exists")

    assert other in list_topics(cluster)
    assert again.code == 1
    assert f"Topic '{topic}' does not exist" in again.out
    assert anyway.code == 0


def test_a_topic_cannot_be_created_twice(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    again = cluster.run_unchecked("kafka-topics", "--create", "--topic", topic)
    anyway = cluster.run_unchecked("kafka-topics", "--create", "--topic", topic, "--if-not-exists")

    assert again.code == 1
    assert "TopicExistsException" in again.err
    assert anyway.code == 0


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--replication-factor 3", "InvalidReplicationFactorException"),
        ("--replica-assignment 7,7", "InvalidReplicaAssignmentException"),
    ],
)
def test_an_invalid_topic_is_refused(cluster: Cluster, option: str, error: str) -> None:
    topic = cluster.unique_name("topic")

    ended = cluster.run_unchecked("kafka-topics", "--create", "--topic", topic, *option.split())

    assert ended.code == 1
    assert error in ended.err
    assert topic not in list_topics(cluster)


@pytest.mark.parametrize("name", ["two words", "..", "a" * 250])
def test_an_invalid_name_is_refused(cluster: Cluster, name: str) -> None:
    ended = cluster.run_unchecked("kafka-topics", "--create", "--topic", name)

    assert ended.code == 1
    assert "InvalidTopicException" in ended.err


def test_replicas_can_be_assigned_to_the_only_broker(cluster: Cluster) -> None:
    topic = cluster.unique_name("topic")

    cluster.run("kafka-topics", "--create", "--topic", topic, "--replica-assignment", "1,1,1")

    head, *_ = describe(cluster, "--topic", topic)
    assert head["PartitionCount"] == "3"


def test_internal_topics_can_be_excluded(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    arguments = ("--topic", topic, "--to-latest", "--execute")
    cluster.run("kafka-consumer-groups", "--reset-offsets", "--group", "internal", *arguments)

    everything = list_topics(cluster)
    without = list_topics(cluster, "--exclude-internal")
    head, *_ = describe(cluster, "--topic", "__consumer_offsets")

    assert "__consumer_offsets" in everything
    assert "__consumer_offsets" not in without
    assert topic in without
    assert head["PartitionCount"] == "4"
    assert overrides(head)["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    "ailment",
    [
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--under-min-isr-partitions",
        "--at-min-isr-partitions",
    ],
)
def test_partition_health_is_that_of_a_single_broker(cluster: Cluster, ailment: str) -> None:
    topic = cluster.create_topic(2)

    rows = [row for row in describe(cluster, ailment) if row["Topic"] == topic]

    # With one replica and min.insync.replicas=1, every partition is at its minimum.
    at_least = 2 if ailment == "--at-min-isr-partitions" else 0
    assert len(rows) == at_least
