"""kafka-configs: what is set, by whom, and how to change it."""

import re
from pathlib import Path

import pytest

from tests.contract.tools.cluster import Cluster

_LINE = re.compile(r"  (?P<name>\S+)=(?P<text>.*) sensitive=(true|false) synonyms=\{(?P<from>.*)\}")


def describe(cluster: Cluster, *what: str) -> dict[str, tuple[str, str]]:
    """Each setting's value, and from where it is."""
    ended = cluster.run("kafka-configs", "--describe", *what)
    found = filter(None, map(_LINE.fullmatch, ended.out.splitlines()))
    return {each["name"]: (each["text"], each["from"].partition(":")[0]) for each in found}


def of_topic(topic: str) -> tuple[str, ...]:
    return ("--entity-type", "topics", "--entity-name", topic)


def alter(cluster: Cluster, topic: str, *what: str) -> None:
    ended = cluster.run("kafka-configs", "--alter", *of_topic(topic), *what)
    assert f"Completed updating config for topic {topic}" in ended.out


def test_settings_are_added_and_taken_back(cluster: Cluster) -> None:
    topic = cluster.create_topic(1, "--config", "retention.ms=1000000")

    before = describe(cluster, *of_topic(topic))
    alter(cluster, topic, "--add-config", "retention.bytes=5000000,cleanup.policy=[compact,delete]")
    added = describe(cluster, *of_topic(topic))
    alter(cluster, topic, "--delete-config", "retention.ms,retention.bytes")
    left = describe(cluster, *of_topic(topic))

    own = "DYNAMIC_TOPIC_CONFIG"
    assert before == {"retention.ms": ("1000000", own)}
    assert added == {
        "retention.ms": ("1000000", own),
        "retention.bytes": ("5000000", own),
        "cleanup.policy": ("compact,delete", own),
    }
    assert left == {"cleanup.policy": ("compact,delete", own)}


def test_settings_may_come_from_a_file(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    wishes = "max.message.bytes=2000000\nmessage.timestamp.type=LogAppendTime\n"
    (tmp_path / "wishes").write_text(wishes, "utf-8")

    alter(cluster, topic, "--add-config-file", f"{tmp_path / 'wishes'}")

    found = describe(cluster, *of_topic(topic))
    assert found["max.message.bytes"][0] == "2000000"
    assert found["message.timestamp.type"][0] == "LogAppendTime"


@pytest.mark.parametrize(
    "wish", ["retention.ms=never", "segment.bytes=1", "no.such.setting=1", "cleanup.policy=tidy"]
)
def test_a_setting_that_cannot_be_is_refused(cluster: Cluster, wish: str) -> None:
    topic = cluster.create_topic()

    ended = cluster.try_to("kafka-configs", "--alter", *of_topic(topic), "--add-config", wish)

    assert ended.code == 1
    assert "InvalidConfigurationException" in ended.err
    assert describe(cluster, *of_topic(topic)) == {}


def test_a_topic_that_is_not_there_has_no_settings(cluster: Cluster) -> None:
    missing = cluster.name_anew("missing")
    words = (*of_topic(missing), "--add-config", "retention.ms=1")

    described = cluster.run("kafka-configs", "--describe", *of_topic(missing))
    altered = cluster.try_to("kafka-configs", "--alter", *words)

    assert f"The topic '{missing}' doesn't exist" in described.out
    assert altered.code == 1
    assert "UnknownTopicOrPartitionException" in altered.err


def test_the_node_tells_what_it_was_started_with(cluster: Cluster) -> None:
    node = ("--entity-type", "brokers", "--entity-name", "1")

    dynamic = describe(cluster, *node)
    everything = describe(cluster, *node, "--all")

    assert dynamic.keys() <= {"min.insync.replicas"}
    given = "STATIC_BROKER_CONFIG"
    assert everything["group.initial.rebalance.delay.ms"] == ("0", given)
    assert everything["offsets.topic.num.partitions"] == ("4", given)
    assert everything["offset.metadata.max.bytes"] == ("4096", "DEFAULT_CONFIG")
    assert everything["group.max.session.timeout.ms"] == ("1800000", "DEFAULT_CONFIG")


def test_topic_settings_are_those_of_kafka(kohort_cluster: Cluster, kafka_cluster: Cluster) -> None:
    """All of them, by name and by value; where a value is from may differ in depth."""
    ours, theirs = (
        describe(cluster, *of_topic(cluster.create_topic()), "--all")
        for cluster in (kohort_cluster, kafka_cluster)
    )

    set_for_tests = {"file.delete.delay.ms"}
    assert {name: text for name, (text, _) in ours.items() if name not in set_for_tests} == {
        name: text for name, (text, _) in theirs.items() if name not in set_for_tests
    }
