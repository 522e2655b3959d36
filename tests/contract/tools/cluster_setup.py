"""Sets up a cluster for tests: records, members, committed offsets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.tool_output import Row, read_tables
from tests.contract.tools.tool_runner import Running
from tests.wait import wait_until


def write(
    cluster: Cluster, topic: str, count: int, *, partition: int = 0, times_ms: Sequence[int] = ()
) -> None:
    """Produce this many records, with these timestamps if given."""
    failures: list[object] = []
    # Closed at once: a producer that lives on reconnects to a port that is used again later.
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    try:
        for number in range(count):
            producer.produce(
                topic,
                key=f"key {number}",
                value=f"value {number}",
                partition=partition,
                timestamp=times_ms[number] if times_ms else 0,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(30) == 0, "records were not acknowledged"
    finally:
        producer.close()
    assert not failures, failures


def create_topic_with_leaders(cluster: Cluster, partitions: int) -> str:
    """A topic whose partitions all have leaders, for idempotent producers.

    Before that, Kafka may refuse the first batch and accept the second one, and then refuse the
    first one for ever.
    """
    topic = cluster.create_topic(partitions)
    wait_until(lambda: len(end_offsets(cluster, topic)) == partitions, 20, f"leaders of {topic}")
    return topic


def end_offsets(cluster: Cluster, topic: str) -> list[int]:
    """The end offsets of all partitions that have leaders."""
    ended = cluster.run_unchecked("kafka-get-offsets", "--topic", topic)
    return [int(line.rpartition(":")[2]) for line in ended.lines]


def commit(cluster: Cluster, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit with the admin tool, for a group without members."""
    for (topic, partition), offset in offsets.items():
        arguments = ("--topic", f"{topic}:{partition}", "--to-offset", f"{offset}", "--execute")
        ended = cluster.run(
            "kafka-consumer-groups", "--reset-offsets", "--group", group, *arguments
        )
        assert "Error" not in ended.out, ended


def delete_records(
    cluster: Cluster, folder: Path, before: Mapping[tuple[str, int], int]
) -> list[str]:
    """Delete records before these offsets; returns the output lines of the tool."""
    partitions = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in before.items()
    ]
    file = folder / "delete-records.json"
    file.write_text(json.dumps({"partitions": partitions, "version": 1}), "utf-8")
    ended = cluster.run("kafka-delete-records", "--offset-json-file", f"{file}")
    return [line for line in ended.lines if line.startswith("partition: ")]


@contextmanager
def member(cluster: Cluster, topic: str, group: str, **settings: str) -> Iterator[Running]:
    """A console consumer in a group, from its assignment until the block ends."""
    before = len(describe(cluster, group, "--members")) if group_exists(cluster, group) else 0
    arguments = ["--topic", topic, "--group", group, "--from-beginning"]
    for name, content in settings.items():
        arguments += ["--command-property", f"{name.replace('_', '.')}={content}"]
    running = cluster.start("kafka-console-consumer", *arguments)
    try:
        wait_until(lambda: _is_stable(cluster, group, before + 1), 30, f"{group} is stable")
        yield running
    finally:
        running.stop()


def describe(cluster: Cluster, group: str, *what: str) -> list[Row]:
    arguments = ("--describe", "--group", group, *what)
    return read_tables(cluster.run("kafka-consumer-groups", *arguments).out)


def committed(cluster: Cluster, group: str) -> dict[tuple[str, int], int]:
    return {
        (row["TOPIC"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
        for row in describe(cluster, group, "--offsets")
        if row["CURRENT-OFFSET"] != "-"
    }


def describe_all_groups(cluster: Cluster, topic: str) -> list[Row]:
    """The rows of `--describe --all-groups --offsets` that are about this topic.

    The tool prints an error and no rows if a group disappears while it runs. Tests that run at the
    same time on the shared Apache Kafka delete groups, so it is run again after such an error.
    """

    def rows() -> list[Row]:
        ended = cluster.run("kafka-consumer-groups", "--describe", "--all-groups", "--offsets")
        if "GroupIdNotFoundException" in ended.out:
            return []
        return [row for row in read_tables(ended.out) if row["TOPIC"] == topic]

    return wait_until(rows, 60, f"rows about {topic}")


def list_groups(cluster: Cluster, *what: str) -> set[str]:
    return set(cluster.run("kafka-consumer-groups", "--list", *what).lines)


def group_exists(cluster: Cluster, group: str) -> bool:
    return group in list_groups(cluster)


def _is_stable(cluster: Cluster, group: str, members: int) -> bool:
    if not group_exists(cluster, group):
        return False
    (state,) = describe(cluster, group, "--state")
    return (state["STATE"], state["#MEMBERS"]) == ("Stable", f"{members}")
