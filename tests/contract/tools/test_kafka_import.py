"""Kohort imports the log directory of an Apache Kafka with its groups and offsets.

Kafka is started twice, because leader epochs grow with every start.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.apache import java
from tests.apache.cluster import READY_S, Kafka
from tests.apache.jars import find_classpath
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import describe, write
from tests.contract.tools.conftest import SETTINGS
from tests.contract.tools.group_churn import (
    LATER,
    PARTITIONS,
    RECORDS,
    SESSION_MS,
    TOPIC,
    churn_after_restart,
    churn_before_restart,
    commit_offsets,
    consuming,
)
from tests.contract.tools.tool_output import Row, read_tables
from tests.contract.tools.tool_runner import Tools
from tests.node.served_node import ServedNode
from tests.wait import wait_until

OF_THE_NEWER_KIND = {"newer", "newer-active"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The state of all groups according to Kafka's tools and a client."""

    offsets: dict[tuple[str, str, str], tuple[str, str]]
    """Committed offset and log end offset, by group, topic and partition."""
    states: dict[str, tuple[str, str]]
    metadata: dict[str, list[tuple[int, int, str]]]
    epochs: set[str]
    """Leader epochs that were committed with the offsets."""
    members: list[Row]
    """The members of the group that still has some."""


def ask(cluster: Cluster) -> Told:
    arguments = ("--describe", "--all-groups", "--offsets", "--verbose")
    rows = read_tables(cluster.run("kafka-consumer-groups", *arguments).out)
    listed = cluster.run("kafka-consumer-groups", "--list", "--state", "--type")
    states = {row["GROUP"]: (row["TYPE"], row["STATE"]) for row in read_tables(listed.out)}
    return Told(
        offsets={
            (row["GROUP"], row["TOPIC"], row["PARTITION"]): (
                row["CURRENT-OFFSET"],
                row["LOG-END-OFFSET"],
            )
            for row in rows
            if row["CURRENT-OFFSET"] != "-"
        },
        states=states,
        metadata={group: metadata_of(cluster, group) for group in states},
        epochs={row["LEADER-EPOCH"] for row in rows},
        members=describe(cluster, "static", "--members", "--verbose"),
    )


def metadata_of(cluster: Cluster, group: str) -> list[tuple[int, int, str]]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    places = asked[group].result().topic_partitions
    return sorted((place.partition, place.offset, place.metadata or "") for place in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    before: Told
    data: Path


@pytest.fixture(scope="module")
def moved(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Moved:
    folder = tmp_path_factory.mktemp("moved")
    # Kafka's default of 50, more than Kohort's default.
    settings = {"offsets.topic.num.partitions": 50, "offsets.retention.check.interval.ms": 200}
    with Kafka(folder / "kafka", settings) as kafka:
        cluster = Cluster(name="kafka", bootstrap_servers=kafka.bootstrap_servers, tools=tools)
        arguments = ("--topic", TOPIC, "--partitions", f"{PARTITIONS}")
        cluster.run("kafka-topics", "--create", *arguments)
        for partition in range(PARTITIONS):
            write(cluster, TOPIC, RECORDS, partition=partition)
        churn_before_restart(cluster)
    (properties,) = folder.glob("kafka/*/server.properties")
    with started_again(properties, cluster), ExitStack() as stack:
        churn_after_restart(cluster)
        static = {"group_instance_id": "static-1", "session_timeout_ms": SESSION_MS}
        commit_offsets(stack.enter_context(consuming(cluster, "static", **static)), {0: 8, 3: 9})
        newer = stack.enter_context(consuming(cluster, "newer-active", group_protocol="consumer"))
        commit_offsets(newer, {1: 15})
        before = ask(cluster)
    move(properties.parent / "data", folder / "data")
    return Moved(before=before, data=folder / "data")


def move(kafka: Path, data: Path) -> None:
    arguments = [sys.executable, "-m", "kohort.log.kafka_import", f"{kafka}", f"{data}"]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended


@contextmanager
def started_again(properties: Path, cluster: Cluster) -> Iterator[None]:
    """The same Kafka with the same data, until it is stopped cleanly."""
    log = properties.with_name("again.log")
    with log.open("wb") as out:
        arguments = java.command(find_classpath(), "kafka.Kafka", f"{properties}", heap_mb=384)
        process = subprocess.Popen(arguments, stdout=out, stderr=out)
    try:
        wait_until(
            lambda: TOPIC in cluster.run_unchecked("kafka-topics", "--list").out,
            READY_S,
            "it is back",
        )
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def served(moved: Moved, tools: Tools, folder: Path) -> Iterator[Cluster]:
    """A Kohort broker on the imported files, shared by all tests."""
    if not (folder / "data").exists():
        (folder / "data").symlink_to(moved.data)
    with ServedNode(folder, SETTINGS) as node:
        yield Cluster(name="kohort", bootstrap_servers=node.bootstrap_servers, tools=tools)
        assert node.stop() == 0
        assert "Traceback" not in node.log


def test_groups_and_offsets_are_those_of_kafka(moved: Moved, tools: Tools, tmp_path: Path) -> None:
    with served(moved, tools, tmp_path) as cluster:
        after = ask(cluster)

    before = moved.before
    assert after.offsets == before.offsets
    assert after.metadata == before.metadata
    assert after.members == before.members
    for group, told in before.states.items():
        # Members of the consumer protocol are not imported; their offsets are.
        expected = ("Classic", "Empty") if group in OF_THE_NEWER_KIND else told
        assert after.states[group] == expected
    assert after.states.keys() == before.states.keys()


def test_the_observed_state_is_the_expected_one(moved: Moved) -> None:
    """Checks what the other tests assume about the state in Kafka."""
    before = moved.before

    assert before.states["static"] == ("Classic", "Stable")
    assert before.states["newer"] == ("Consumer", "Empty")
    assert before.states["newer-active"] == ("Consumer", "Stable")
    assert not before.states.keys() & {"deleted", "expired"}
    assert before.metadata["noted"] == [(0, 3, "why: ünïcode"), (1, 4, "why: ünïcode")]
    assert [place[:2] for place in before.metadata["dynamic"]] == [(0, 11), (1, 12), (2, 5), (3, 5)]
    assert [place[:2] for place in before.metadata["thinned"]] == [(0, 5), (2, 7)]
    assert [place[:2] for place in before.metadata["reborn"]] == [(1, 2)]
    assert [place[1] for place in before.metadata["reader"]] == [RECORDS + 1] * PARTITIONS
    assert before.epochs - {"-", "0"}


def test_a_restart_finds_the_same_state(moved: Moved, tools: Tools, tmp_path: Path) -> None:
    with served(moved, tools, tmp_path):
        pass
    with served(moved, tools, tmp_path) as cluster:
        again = ask(cluster)

    assert again.offsets == moved.before.offsets
    assert again.metadata == moved.before.metadata


@pytest.mark.parametrize("group", ["dynamic", "static", "newer", "reader"])
def test_a_java_consumer_continues_from_the_committed_offset(
    moved: Moved, tools: Tools, tmp_path: Path, group: str
) -> None:
    places = {partition: offset for partition, offset, _ in moved.before.metadata[group]}
    unread = {
        partition: [*range(RECORDS), *range(LATER)][places.get(partition, 0) :]
        for partition in range(PARTITIONS)
    }
    left = sum(map(len, unread.values()))
    options = [f"group.instance.id={group}-1", "enable.auto.commit=false"]
    arguments = ["--topic", TOPIC, "--group", group, "--from-beginning"]
    arguments += [word for option in options for word in ("--command-property", option)]
    arguments += ["--max-messages", f"{left}", "--timeout-ms", "30000"]

    with served(moved, tools, tmp_path) as cluster:
        ended = cluster.run("kafka-console-consumer", *arguments)

    expected = [f"value {number}" for numbers in unread.values() for number in numbers]
    assert sorted(ended.lines) == sorted(expected), ended.err
