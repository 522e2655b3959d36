"""Kafka's formatters read the same records from `__consumer_offsets` of Kohort and Kafka."""

import json
from collections.abc import Iterator
from typing import Any

from kohort.events.internal_topics import partition_of
from kohort.types import GroupId
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import commit, write

TOPIC = "__consumer_offsets"

FORMATTERS = {
    "offsets": "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
    "groups": "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter",
}

OF_THIS_RUN = {"memberId", "leader", "commitTimestamp", "currentStateTimestamp"}
"""Fields that differ between any two runs."""

OF_KAFKA = "topicId"
"""Kafka looks up the topic id of every committed offset; Kohort stores the id if the request has
one. Both read offsets with and without a topic id."""


def place_of(group: str) -> tuple[str, ...]:
    return ("--topic", TOPIC, "--partition", f"{partition_of(GroupId(group), 4)}")


def end_of(cluster: Cluster, group: str) -> int:
    arguments = ("--topic", TOPIC, "--partitions", f"{partition_of(GroupId(group), 4)}")
    (line,) = cluster.run("kafka-get-offsets", *arguments).lines
    return int(line.rpartition(":")[2])


def read(cluster: Cluster, group: str, start: int, kind: str) -> list[Any]:
    """Keys and values of one group's records from an offset on, as the formatter prints them."""
    arguments = (*place_of(group), "--offset", f"{start}", "--formatter", FORMATTERS[kind])
    count = end_of(cluster, group) - start
    ended = cluster.run("kafka-console-consumer", *arguments, "--max-messages", f"{count}")
    found = [[each["key"], each["value"]] for each in documents(ended.out)]
    return [pair for pair in found if pair[0]["data"]["group"] == group]


def documents(text: str) -> Iterator[Any]:
    """Concatenated JSON documents."""
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        document, position = decoder.raw_decode(text, position)
        yield document


def without_chance(document: Any) -> Any:
    if isinstance(document, dict):
        return {
            name: "any" if name in OF_THIS_RUN else without_chance(inner)
            for name, inner in document.items()
            if name != OF_KAFKA
        }
    if isinstance(document, list):
        return [without_chance(each) for each in document]
    return document


def tell_a_story(cluster: Cluster, group: str) -> None:
    """A static member joins, commits and closes; its offsets are altered, then deleted."""
    topic = "orders"
    cluster.run(
        "kafka-topics", "--create", "--topic", topic, "--partitions", "2", "--if-not-exists"
    )
    for partition in range(2):
        write(cluster, topic, 3, partition=partition)
    settings = ("client.id=reader", "auto.commit.interval.ms=60000")
    arguments = [word for setting in settings for word in ("--command-property", setting)]
    cluster.run(
        "kafka-console-consumer",
        *("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "6"),
        *arguments,
    )
    commit(cluster, group, {(topic, 0): 1})
    arguments = ["--delete-offsets", "--group", group, "--topic", f"{topic}:1"]
    cluster.run("kafka-consumer-groups", *arguments)
    cluster.run("kafka-consumer-groups", "--delete", "--group", group)


def test_both_write_the_same_records_for_the_same_requests(
    kohort_cluster: Cluster, kafka_cluster: Cluster
) -> None:
    group = kohort_cluster.unique_name("group")
    records = []

    for cluster in (kohort_cluster, kafka_cluster):
        # Kafka creates the topic for the first group.
        commit(cluster, cluster.unique_name("prelude"), {(cluster.create_topic(), 0): 0})
        start = end_of(cluster, group)
        tell_a_story(cluster, group)
        records.append({kind: read(cluster, group, start, kind) for kind in FORMATTERS})

    ours, theirs = records
    assert len(ours["groups"]) >= 3
    assert without_chance(ours) == without_chance(theirs)


def test_a_commit_is_read_with_all_fields(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    write(cluster, topic, 3)
    commit(cluster, group, {(topic, 0): 0})
    start = end_of(cluster, group)

    commit(cluster, group, {(topic, 0): 2})
    ((key, content),) = read(cluster, group, start, "offsets")

    assert key["data"] == {"group": group, "topic": topic, "partition": 0}
    assert content["data"]["offset"] == 2
    assert content["data"]["metadata"] == ""
