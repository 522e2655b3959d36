"""A node that is given the files of an Apache Kafka knows its groups as Kafka knew them.

The Kafka is started twice, as any Kafka is: leaders' epochs grow with every start.
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
from tests.contract.tools.churning import (
    LATER,
    PARTITIONS,
    RECORDS,
    SESSION_MS,
    TOPIC,
    consuming,
    keep,
    live_after_restart,
    live_before_restart,
)
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.conftest import SETTINGS
from tests.contract.tools.reading import Row, read_tables
from tests.contract.tools.running import Tools
from tests.contract.tools.working import describe, write
from tests.node.serving import Served
from tests.waiting import wait_until

OF_THE_NEWER_KIND = {"newer", "newer-active"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What Kafka's own tools and a client say of all groups."""

    offsets: dict[tuple[str, str, str], tuple[str, str]]
    """By group, topic and partition: what is committed, and where the log ends."""
    states: dict[str, tuple[str, str]]
    metadata: dict[str, list[tuple[int, int, str]]]
    epochs: set[str]
    """Of the leaders whose records were read last, as far as readers have told."""
    members: list[Row]
    """Of the group that still has one."""


def ask(cluster: Cluster) -> Told:
    words = ("--describe", "--all-groups", "--offsets", "--verbose")
    rows = read_tables(cluster.run("kafka-consumer-groups", *words).out)
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
    # Fifty as by default, and more than the node would make by itself.
    settings = {"offsets.topic.num.partitions": 50, "offsets.retention.check.interval.ms": 200}
    with Kafka(folder / "kafka", settings) as kafka:
        cluster = Cluster(name="kafka", bootstrap_servers=kafka.bootstrap_servers, tools=tools)
        words = ("--topic", TOPIC, "--partitions", f"{PARTITIONS}")
        cluster.run("kafka-topics", "--create", *words)
        for partition in range(PARTITIONS):
            write(cluster, TOPIC, RECORDS, partition=partition)
        live_before_restart(cluster)
    (properties,) = folder.glob("kafka/*/server.properties")
    with started_again(properties, cluster), ExitStack() as stack:
        live_after_restart(cluster)
        static = {"group_instance_id": "static-1", "session_timeout_ms": SESSION_MS}
        keep(stack.enter_context(consuming(cluster, "static", **static)), {0: 8, 3: 9})
        newer = stack.enter_context(consuming(cluster, "newer-active", group_protocol="consumer"))
        keep(newer, {1: 15})
        before = ask(cluster)
    move(properties.parent / "data", folder / "data")
    return Moved(before=before, data=folder / "data")


def move(kafka: Path, data: Path) -> None:
    words = [sys.executable, "-m", "kohort.log.adoption", f"{kafka}", f"{data}"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended


@contextmanager
def started_again(properties: Path, cluster: Cluster) -> Iterator[None]:
    """The same Kafka with what it has kept, until it is stopped as it wants to be."""
    log = properties.with_name("again.log")
    with log.open("wb") as out:
        words = java.command(find_classpath(), "kafka.Kafka", f"{properties}", heap_mb=384)
        process = subprocess.Popen(words, stdout=out, stderr=out)
    try:
        wait_until(
            lambda: TOPIC in cluster.try_to("kafka-topics", "--list").out, READY_S, "it is back"
        )
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def served(moved: Moved, tools: Tools, folder: Path) -> Iterator[Cluster]:
    """A node on the files; they are moved in once, and every test goes on from there."""
    if not (folder / "data").exists():
        (folder / "data").symlink_to(moved.data)
    with Served(folder, SETTINGS) as node:
        yield Cluster(name="kohort", bootstrap_servers=node.bootstrap_servers, tools=tools)
        assert node.stop() == 0
        assert "Traceback" not in node.journal


def test_groups_and_offsets_are_as_kafka_told(moved: Moved, tools: Tools, tmp_path: Path) -> None:
    with served(moved, tools, tmp_path) as cluster:
        after = ask(cluster)

    before = moved.before
    assert after.offsets == before.offsets
    assert after.metadata == before.metadata
    assert after.members == before.members
    for group, told in before.states.items():
        # Members of the newer kind are not known here; what they committed is.
        expected = ("Classic", "Empty") if group in OF_THE_NEWER_KIND else told
        assert after.states[group] == expected
    assert after.states.keys() == before.states.keys()


def test_what_was_told_is_what_had_happened(moved: Moved) -> None:
    """Of the story that the other tests rely on, the parts that could get lost unnoticed."""
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


def test_a_second_start_finds_the_same(moved: Moved, tools: Tools, tmp_path: Path) -> None:
    with served(moved, tools, tmp_path):
        pass
    with served(moved, tools, tmp_path) as cluster:
        again = ask(cluster)

    assert again.offsets == moved.before.offsets
    assert again.metadata == moved.before.metadata


@pytest.mark.parametrize("group", ["dynamic", "static", "newer", "reader"])
def test_a_java_consumer_goes_on_where_the_group_was(
    moved: Moved, tools: Tools, tmp_path: Path, group: str
) -> None:
    places = {partition: offset for partition, offset, _ in moved.before.metadata[group]}
    unread = {
        partition: [*range(RECORDS), *range(LATER)][places.get(partition, 0) :]
        for partition in range(PARTITIONS)
    }
    left = sum(map(len, unread.values()))
    wishes = [f"group.instance.id={group}-1", "enable.auto.commit=false"]
    words = ["--topic", TOPIC, "--group", group, "--from-beginning"]
    words += [word for wish in wishes for word in ("--command-property", wish)]
    words += ["--max-messages", f"{left}", "--timeout-ms", "30000"]

    with served(moved, tools, tmp_path) as cluster:
        ended = cluster.run("kafka-console-consumer", *words)

    expected = [f"value {number}" for numbers in unread.values() for number in numbers]
    assert sorted(ended.lines) == sorted(expected), ended.err
