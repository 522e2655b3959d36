"""kafka-configs: describe and alter settings."""

import re
from pathlib import Path

import pytest

from tests.contract.tools.cluster import Cluster

_LINE = re.compile(r"  (?P<name>\S+)=(?P<text>.*) sensitive=(true|false) synonyms=\{(?P<from>.*)\}")


def describe(cluster: Cluster, *what: str) -> dict[str, tuple[str, str]]:
    """The value and the source of each setting."""
    ended = cluster.run("kafka-configs", "--describe", *what)
    found = filter(None, map(_LINE.fullmatch, ended.out.splitlines()))
    return {each["name"]: (each["text"], each["from"].partition(":")[0]) for each in found}


def of_topic(topic: str) -> tuple[str, ...]:
    return ("--entity-type", "topics", "--entity-name", topic)


def alter(cluster: Cluster, topic: str, *what: str) -> None:
    ended = cluster.run("kafka-configs", "--alter", *of_topic(topic), *what)
    assert f"Completed updating config for topic {topic}" in ended.out


def test_settings_are_added_and_deleted(cluster: Cluster) -> None:
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


def test_settings_can_come_from_a_file(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    options = "max.message.bytes=2000000\nmessage.timestamp.type=LogAppendTime\n"
    (tmp_path / "options").write_text(options, "utf-8")

    alter(cluster, topic, "--add-config-file", f"{tmp_path / 'options'}")

    found = describe(cluster, *of_topic(topic))
    assert found["max.message.bytes"][0] == "2000000"
    assert found["message.timestamp.type"][0] == "LogAppendTime"


@pytest.mark.parametrize(
    "option", ["retention.ms=never", "segment.bytes=1", "no.such.setting=1", "cleanup.policy=tidy"]
)
def test_an_invalid_setting_is_refused(cluster: Cluster, option: str) -> None:
    topic = cluster.create_topic()

    ended = cluster.run_unchecked(
        "kafka-configs", "--alter", *of_topic(topic), "--add-config", option
    )

    assert ended.code == 1
    assert "InvalidConfigurationException" in ended.err
    assert describe(cluster, *of_topic(topic)) == {}


def test_an_unknown_topic_has_no_settings(cluster: Cluster) -> None:
    missing = cluster.unique_name("missing")
    arguments = (*of_topic(missing), "--add-config", "retention.ms=1")

    described = cluster.run("kafka-configs", "--describe", *of_topic(missing))
    altered = cluster.run_unchecked("kafka-configs", "--alter", *arguments)

    assert f"The topic '{missing}' doesn't exist" in described.out
    assert altered.code == 1
    assert "UnknownTopicOrPartitionException" in altered.err


def test_the_broker_settings_are_described(cluster: Cluster) -> None:
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
    """Names and values of all settings; the lists of synonyms may differ."""
    ours, theirs = (
        describe(cluster, *of_topic(cluster.create_topic()), "--all")
        for cluster in (kohort_cluster, kafka_cluster)
    )

    set_for_tests = {"file.delete.delay.ms"}
    assert {name: text for name, (text, _) in ours.items() if name not in set_for_tests} == {
        name: text for name, (text, _) in theirs.items() if name not in set_for_tests
    }
