"""Tools for the cluster: API versions, brokers, log directories."""

import json
import re
from pathlib import Path

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import commit, member, write
from tests.contract.tools.tool_output import read_tables

_API = re.compile(r"\t(?P<name>\w+)\((?P<key>\d+)\): (?P<first>\d+)(?: to (?P<last>\d+))? \[")


def versions(cluster: Cluster) -> dict[str, tuple[int, int]]:
    """The first and last version of each API that the tool can use here."""
    found = _API.finditer(cluster.run("kafka-broker-api-versions").out)
    return {
        each["name"]: (int(each["first"]), int(each["last"] or each["first"])) for each in found
    }


def test_served_versions_are_those_of_kafka(
    kohort_cluster: Cluster, kafka_cluster: Cluster
) -> None:
    ours, theirs = versions(kohort_cluster), versions(kafka_cluster)

    assert "JoinGroup" in ours
    assert {name: theirs[name] for name in ours} == ours


def test_the_cluster_has_an_id_and_one_broker(cluster: Cluster) -> None:
    host, _, port = cluster.bootstrap_servers.rpartition(":")

    named = cluster.run("kafka-cluster", "cluster-id")
    endpoints = cluster.run("kafka-cluster", "list-endpoints")

    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", named.out)
    _, (number, *where, rack, state, kind) = (line.split() for line in endpoints.lines)
    assert (number, where, rack) == ("1", [host, port], "null")
    assert (state, kind) == ("unfenced", "broker")


def test_groups_of_all_types_are_listed(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    busy, idle = cluster.unique_name("busy"), cluster.unique_name("idle")
    commit(cluster, idle, {(topic, 0): 0})

    with member(cluster, topic, busy):
        everything = list_groups(cluster)
        consumers = list_groups(cluster, "--consumer")
        classic = list_groups(cluster, "--group-type", "classic")
        simple = list_groups(cluster, "--group-type", "classic", "--protocol", "")

    assert everything[busy] == ("Classic", "consumer")
    assert everything[idle] == ("Classic", "")
    assert {busy, idle} <= consumers.keys()
    assert {busy, idle} <= classic.keys()
    assert idle in simple
    assert busy not in simple


def list_groups(cluster: Cluster, *what: str) -> dict[str, tuple[str, str]]:
    rows = read_tables(cluster.run("kafka-groups", "--list", *what).out)
    return {row["GROUP"]: (row["TYPE"], row["PROTOCOL"]) for row in rows}


def test_other_types_of_groups_are_not_found(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    commit(cluster, group, {(topic, 0): 0})

    shared = cluster.run("kafka-share-groups", "--list")
    streams = cluster.run("kafka-streams-groups", "--list")

    assert group not in shared.out
    assert group not in streams.out


def test_there_are_no_feature_flags(kohort_cluster: Cluster) -> None:
    at = ("--bootstrap-server", kohort_cluster.bootstrap_servers)

    ended = kohort_cluster.tools.run("kafka-features", *at, "describe")

    assert (ended.code, ended.out.strip()) == (0, "")


def test_the_client_compatibility_test_passes(cluster: Cluster) -> None:
    """A program of Kafka that tests features which old brokers lack."""
    topic = cluster.unique_name("compatibility")
    options = {
        "cluster-id-supported": "true",
        "create-topics-supported": "true",
        "describe-acls-supported": "true" if cluster.name == "kafka" else "false",
        "describe-configs-supported": "true",
        "expect-record-too-large-exception": "false",
        "idempotent-producer-supported": "true",
        "num-cluster-nodes": "1",
        "offsets-for-times-supported": "true",
    }
    arguments = [word for name, option in options.items() for word in (f"--{name}", option)]

    ended = cluster.run("ClientCompatibilityTest", "--topic", topic, *arguments)

    assert ended.out.strip().endswith("SUCCESS.")


def test_a_streams_application_can_be_reset(cluster: Cluster) -> None:
    topic, application = cluster.create_topic(), cluster.unique_name("application")
    write(cluster, topic, 5)
    commit(cluster, application, {(topic, 0): 4})
    arguments = ("--application-id", application, "--input-topics", topic, "--to-earliest")

    ended = cluster.run("kafka-streams-application-reset", *arguments)

    assert f"Topic: {topic} Partition: 0 Offset: 0" in ended.out


def test_log_directories_are_described_with_their_size(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    write(cluster, topic, 10, partition=1)

    ended = cluster.run("kafka-log-dirs", "--describe", "--topic-list", topic)

    (broker,) = json.loads(ended.lines[-1])["brokers"]
    (directory,) = broker["logDirs"]
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert broker["broker"] == 1
    assert directory["error"] is None
    assert sizes.keys() == {f"{topic}-0", f"{topic}-1"}
    assert sizes[f"{topic}-0"] == 0
    assert sizes[f"{topic}-1"] > 10 * len("value 0")


@pytest.mark.parametrize(
    ("command", "api"),
    [
        ("kafka-acls --list", "DESCRIBE_ACLS"),
        ("kafka-client-metrics --list", "LIST_CONFIG_RESOURCES"),
        ("kafka-leader-election --election-type preferred --all-topic-partitions", "ELECT_LEADERS"),
        ("kafka-metadata-quorum describe --status", "DESCRIBE_QUORUM"),
        ("kafka-reassign-partitions --list", "LIST_PARTITION_REASSIGNMENTS"),
        ("kafka-transactions list", "LIST_TRANSACTIONS"),
        ("kafka-configs --describe --entity-type users", "DESCRIBE_CLIENT_QUOTAS"),
        ("kafka-delegation-tokens --describe --command-config FILE", "DESCRIBE_DELEGATION_TOKEN"),
    ],
)
def test_a_tool_for_an_unsupported_api_reports_that(
    kohort_cluster: Cluster, tmp_path: Path, command: str, api: str
) -> None:
    (tmp_path / "settings").touch()
    tool, *arguments = command.replace("FILE", f"{tmp_path / 'settings'}").split()

    ended = kohort_cluster.tools.run(
        tool, "--bootstrap-server", kohort_cluster.bootstrap_servers, *arguments
    )

    assert ended.code == 1
    assert f"The node does not support {api}" in ended.out + ended.err
