"""`__consumer_offsets` as Kafka's own formatters read it: the same records, whoever wrote them."""

import json
from collections.abc import Iterator
from typing import Any

from kohort.coordinator.partitioner import partition_of
from kohort.types import GroupId
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.working import commit, write

TOPIC = "__consumer_offsets"

FORMATTERS = {
    "offsets": "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
    "groups": "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter",
}

OF_THIS_RUN = {"memberId", "leader", "commitTimestamp", "currentStateTimestamp"}
"""What differs between any two runs."""

OF_KAFKA = "topicId"
"""Kafka looks up the id of every topic that an offset is committed for; Kohort keeps the id if the
request has one. Both read offsets with and without."""


def place_of(group: str) -> tuple[str, ...]:
    return ("--topic", TOPIC, "--partition", f"{partition_of(GroupId(group), 4)}")


def end_of(cluster: Cluster, group: str) -> int:
    words = ("--topic", TOPIC, "--partitions", f"{partition_of(GroupId(group), 4)}")
    (line,) = cluster.run("kafka-get-offsets", *words).lines
    return int(line.rpartition(":")[2])


def read(cluster: Cluster, group: str, start: int, kind: str) -> list[Any]:
    """Keys and values of one group's records since an offset, as the formatter shows them."""
    words = (*place_of(group), "--offset", f"{start}", "--formatter", FORMATTERS[kind])
    count = end_of(cluster, group) - start
    ended = cluster.run("kafka-console-consumer", *words, "--max-messages", f"{count}")
    found = [[each["key"], each["value"]] for each in documents(ended.out)]
    return [pair for pair in found if pair[0]["data"]["group"] == group]


def documents(text: str) -> Iterator[Any]:
    """JSON documents without anything between them."""
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
    """A static member reads and goes; what it kept is changed, then deleted."""
    topic = "story"
    cluster.run(
        "kafka-topics", "--create", "--topic", topic, "--partitions", "2", "--if-not-exists"
    )
    for partition in range(2):
        write(cluster, topic, 3, partition=partition)
    settings = ("client.id=reader", "auto.commit.interval.ms=60000")
    words = [word for setting in settings for word in ("--command-property", setting)]
    cluster.run(
        "kafka-console-consumer",
        *("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "6"),
        *words,
    )
    commit(cluster, group, {(topic, 0): 1})
    words = ["--delete-offsets", "--group", group, "--topic", f"{topic}:1"]
    cluster.run("kafka-consumer-groups", *words)
    cluster.run("kafka-consumer-groups", "--delete", "--group", group)


def test_both_keep_the_same_records_of_the_same_story(
    kohort_cluster: Cluster, kafka_cluster: Cluster
) -> None:
    group = kohort_cluster.name_anew("story")
    told = []

    for cluster in (kohort_cluster, kafka_cluster):
        # Kafka makes the topic when the first group needs it.
        commit(cluster, cluster.name_anew("prelude"), {(cluster.create_topic(), 0): 0})
        start = end_of(cluster, group)
        tell_a_story(cluster, group)
        told.append({kind: read(cluster, group, start, kind) for kind in FORMATTERS})

    ours, theirs = told
    assert len(ours["groups"]) >= 3
    assert without_chance(ours) == without_chance(theirs)


def test_a_commit_is_read_with_all_it_says(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_anew("group")
    write(cluster, topic, 3)
    commit(cluster, group, {(topic, 0): 0})
    start = end_of(cluster, group)

    commit(cluster, group, {(topic, 0): 2})
    ((key, content),) = read(cluster, group, start, "offsets")

    assert key["data"] == {"group": group, "topic": topic, "partition": 0}
    assert content["data"]["offset"] == 2
    assert content["data"]["metadata"] == ""
