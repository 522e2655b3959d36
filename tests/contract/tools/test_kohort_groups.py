"""`kohort groups` and kafka-consumer-groups print the same on the same cluster.

`kohort groups` may print additional columns.
"""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from typer.testing import CliRunner

from kohort.cli.app import app
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import (
    commit,
    committed,
    delete_records,
    describe_all_groups,
    member,
    write,
)
from tests.contract.tools.tool_output import Row, read_tables
from tests.wait import wait_until

NOTHING = "-"


def run(cluster: Cluster, *arguments: str, code: int = 0) -> str:
    """The stdout of `kohort groups`; it must exit with this code."""
    environment = {"KOHORT_BOOTSTRAP": cluster.bootstrap_servers}
    ended = CliRunner().invoke(app, ["groups", *arguments], env=environment)
    assert ended.exit_code == code, ended.output
    return ended.stdout


def theirs(cluster: Cluster, *arguments: str) -> list[Row]:
    return read_tables(cluster.run("kafka-consumer-groups", *arguments).out)


def assert_same(ours: list[Row], others: list[Row]) -> None:
    """Compare row by row, in all columns of Kafka's tool."""
    assert others
    columns = tuple(others[0])
    assert _plain(ours, columns) == _plain(others, columns)


def _plain(rows: list[Row], columns: Iterable[str]) -> list[tuple[str, ...]]:
    # A missing value is an empty cell in one table and a dash in another.
    return sorted(
        tuple(" ".join(row[column].split()) or NOTHING for column in columns) for row in rows
    )


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """A topic, a group with two members, and a group without members."""
    topic = cluster.create_topic(3)
    busy, idle = cluster.unique_name("busy"), cluster.unique_name("idle")
    for partition, count in enumerate((5, 3, 2)):
        write(cluster, topic, count, partition=partition)
    commit(cluster, idle, {(topic, 0): 1, (topic, 2): 2})
    with (
        member(cluster, topic, busy, client_id="first", enable_auto_commit="false"),
        member(
            cluster,
            topic,
            busy,
            client_id="second",
            group_instance_id="second-1",
            enable_auto_commit="false",
        ),
    ):
        yield topic, busy, idle


def test_both_list_the_same_groups(cluster: Cluster, scene: tuple[str, str, str]) -> None:
    _, busy, idle = scene

    ours = read_tables(run(cluster, "list"))
    others = theirs(cluster, "--list", "--state", "--type")
    our_stable = read_tables(run(cluster, "list", "--state", "stable", "--type", "classic"))
    their_stable = theirs(cluster, "--list", "--state", "stable", "--type", "classic")

    # Other tests use the shared Apache Kafka at the same time.
    assert_same(_of_groups(ours, busy, idle), _of_groups(others, busy, idle))
    assert [row["GROUP"] for row in _of_groups(our_stable, busy, idle)] == [busy]
    assert_same(_of_groups(our_stable, busy), _of_groups(their_stable, busy, idle))


def _of_groups(rows: list[Row], *groups: str) -> list[Row]:
    return [row for row in rows if row["GROUP"] in groups]


def test_both_describe_a_group_alike(cluster: Cluster, scene: tuple[str, str, str]) -> None:
    for group in scene[1:]:
        one = ("--describe", "--group", group)

        assert_same(
            read_tables(run(cluster, "offsets", group, "--verbose")),
            theirs(cluster, *one, "--offsets", "--verbose"),
        )
        our_states = read_tables(run(cluster, "describe", group, "--verbose").partition("\n\n")[0])
        assert_same(our_states, theirs(cluster, *one, "--state", "--verbose"))


def test_both_list_the_same_members(cluster: Cluster, scene: tuple[str, str, str]) -> None:
    _, busy, _ = scene

    ours = read_tables(run(cluster, "members", busy, "--verbose"))
    others = theirs(cluster, "--describe", "--group", busy, "--members", "--verbose")

    assert len(ours) == 2
    assert_same(ours, others)


def test_both_describe_all_groups_alike(cluster: Cluster, scene: tuple[str, str, str]) -> None:
    topic, _, _ = scene

    ours = read_tables(run(cluster, "offsets", "--all-groups"))
    others = describe_all_groups(cluster, topic)

    assert_same([row for row in ours if row["TOPIC"] == topic], others)


@pytest.mark.parametrize(
    "option",
    [
        "--to-earliest",
        "--to-latest",
        "--to-offset 4",
        "--to-offset 99",
        "--shift-by 1",
        "--shift-by -50",
        "--to-current",
        "--to-datetime 2001-01-01T00:00:00.000",
        "--by-duration P1D",
        "--by-duration PT0S",
    ],
)
def test_both_plan_the_same_reset(cluster: Cluster, tmp_path: Path, option: str) -> None:
    topic, group = cluster.create_topic(2), cluster.unique_name("group")
    write(cluster, topic, 10)
    delete_records(cluster, tmp_path, {(topic, 0): 2})
    commit(cluster, group, {(topic, 0): 5, (topic, 1): 0})
    arguments = ("--all-topics", *option.split())

    ours = run(cluster, "reset", group, *arguments)
    our_export = run(cluster, "reset", group, *arguments, "--export")
    others = ("--reset-offsets", "--group", group, *arguments, "--dry-run")
    their_export = cluster.run("kafka-consumer-groups", *others, "--export").out

    assert_same(read_tables(ours), theirs(cluster, *others))
    assert sorted(csv.reader(our_export.splitlines())) == sorted(
        row
        for row in csv.reader(their_export.splitlines())
        if row and not row[0].startswith("Warn")
    )


def test_an_export_of_one_is_imported_by_the_other(cluster: Cluster, tmp_path: Path) -> None:
    topic, group = cluster.create_topic(2), cluster.unique_name("group")
    write(cluster, topic, 6)
    write(cluster, topic, 6, partition=1)
    commit(cluster, group, {(topic, 0): 2, (topic, 1): 4})
    file = tmp_path / "plan.csv"
    arguments = ("--all-topics", "--to-current", "--export")

    file.write_text(run(cluster, "reset", group, *arguments), "utf-8")
    run(cluster, "reset", group, "--all-topics", "--to-latest", "--execute")
    moved = committed(cluster, group)
    theirs(cluster, "--reset-offsets", "--group", group, "--from-file", f"{file}", "--execute")
    restored = committed(cluster, group)
    exported = cluster.run("kafka-consumer-groups", "--reset-offsets", "--group", group, *arguments)
    file.write_text(exported.out.strip() + "\n", "utf-8")
    run(cluster, "reset", group, "--all-topics", "--to-earliest", "--execute")
    run(cluster, "reset", group, "--from-file", f"{file}", "--execute")

    assert moved == {(topic, 0): 6, (topic, 1): 6}
    assert restored == committed(cluster, group) == {(topic, 0): 2, (topic, 1): 4}


def test_both_delete_the_same_offsets(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    first, second = cluster.unique_name("group"), cluster.unique_name("group")
    for group in (first, second):
        commit(cluster, group, {(topic, 0): 0, (topic, 1): 0})

    ours = read_tables(run(cluster, "delete-offsets", first, "--topic", f"{topic}:1"))
    others = theirs(cluster, "--delete-offsets", "--group", second, "--topic", f"{topic}:1")

    assert [row["STATUS"] for row in ours] == ["deleted"]
    assert [row["STATUS"] for row in others] == ["Successful"]
    assert committed(cluster, first) == committed(cluster, second) == {(topic, 0): 0}


def test_both_refuse_changes_to_a_group_with_members(
    cluster: Cluster, scene: tuple[str, str, str]
) -> None:
    topic, busy, _ = scene

    run(cluster, "delete", busy, code=1)
    run(cluster, "reset", busy, "--topic", topic, "--to-latest", "--execute", code=1)
    run(cluster, "delete-offsets", busy, "--topic", topic, code=1)
    states = theirs(cluster, "--describe", "--group", busy, "--state")

    assert [row["#MEMBERS"] for row in states] == ["2"]


@contextmanager
def consumer_protocol_member(bootstrap_servers: str, group: str, topic: str) -> Iterator[None]:
    """A member with the consumer protocol (KIP-848), after its assignment."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    try:
        wait_until(lambda: consumer.poll(0.1) is None and consumer.assignment(), 60, "partitions")
        yield
    finally:
        consumer.close()


def test_both_describe_groups_of_the_consumer_protocol_alike(kafka_cluster: Cluster) -> None:
    topic, group = kafka_cluster.create_topic(2), kafka_cluster.unique_name("newer")
    one = ("--describe", "--group", group)

    def is_stable() -> bool:
        (row,) = theirs(kafka_cluster, *one, "--state")
        return row["STATE"] == "Stable"

    with consumer_protocol_member(kafka_cluster.bootstrap_servers, group, topic):
        wait_until(is_stable, 30, "the group to be stable")
        listed = read_tables(run(kafka_cluster, "list", "--type", "consumer"))
        our_states = run(kafka_cluster, "describe", group, "--verbose").partition("\n\n")[0]
        our_members = read_tables(run(kafka_cluster, "members", group, "--verbose"))
        their_states = theirs(kafka_cluster, *one, "--state", "--verbose")
        their_members = theirs(kafka_cluster, *one, "--members", "--verbose")

    assert {row["TYPE"] for row in listed} == {"Consumer"}
    assert group in {row["GROUP"] for row in listed}
    assert_same(read_tables(our_states), their_states)
    assert_same(our_members, their_members)
    assert our_members[0]["TARGET-ASSIGNMENT"] == f"{topic}:0,1"
