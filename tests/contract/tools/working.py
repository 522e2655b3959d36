"""What tests do to a cluster before they look at it: records, members, committed offsets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.reading import Row, read_tables
from tests.contract.tools.running import Running
from tests.waiting import wait_until


def write(
    cluster: Cluster, topic: str, count: int, *, partition: int = 0, times_ms: Sequence[int] = ()
) -> None:
    """So many records, at these times if there are any."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    failures: list[object] = []
    for number in range(count):
        producer.produce(
            topic,
            key=f"key {number}",
            value=f"value {number}",
            partition=partition,
            timestamp=times_ms[number] if times_ms else 0,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    left = producer.flush(30)
    assert not left, "they were not acknowledged"
    assert not failures, failures


def create_led_topic(cluster: Cluster, partitions: int) -> str:
    """A topic all of whose leaders answer, for producers that number their batches.

    Before that a Kafka may refuse the first batch and take the second, and then never the first.
    """
    topic = cluster.create_topic(partitions)
    wait_until(lambda: len(end_offsets(cluster, topic)) == partitions, 20, f"{topic} is led")
    return topic


def end_offsets(cluster: Cluster, topic: str) -> list[int]:
    """Of its partitions, as far as they have leaders."""
    ended = cluster.try_to("kafka-get-offsets", "--topic", topic)
    return [int(line.rpartition(":")[2]) for line in ended.lines]


def commit(cluster: Cluster, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """As an administrator commits for a group without members."""
    for (topic, partition), offset in offsets.items():
        words = ("--topic", f"{topic}:{partition}", "--to-offset", f"{offset}", "--execute")
        ended = cluster.run("kafka-consumer-groups", "--reset-offsets", "--group", group, *words)
        assert "Error" not in ended.out, ended


def delete_records(
    cluster: Cluster, folder: Path, before: Mapping[tuple[str, int], int]
) -> list[str]:
    """Those before these offsets; what the tool said of each partition."""
    wishes = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in before.items()
    ]
    file = folder / "delete-records.json"
    file.write_text(json.dumps({"partitions": wishes, "version": 1}), "utf-8")
    ended = cluster.run("kafka-delete-records", "--offset-json-file", f"{file}")
    return [line for line in ended.lines if line.startswith("partition: ")]


@contextmanager
def member(cluster: Cluster, topic: str, group: str, **settings: str) -> Iterator[Running]:
    """A console consumer in a group, from when it has its partitions until the block ends."""
    before = len(describe(cluster, group, "--members")) if is_there(cluster, group) else 0
    words = ["--topic", topic, "--group", group, "--from-beginning"]
    for name, content in settings.items():
        words += ["--command-property", f"{name.replace('_', '.')}={content}"]
    running = cluster.start("kafka-console-consumer", *words)
    try:
        wait_until(lambda: _is_stable(cluster, group, before + 1), 30, f"{group} is stable")
        yield running
    finally:
        running.stop()


def describe(cluster: Cluster, group: str, *what: str) -> list[Row]:
    words = ("--describe", "--group", group, *what)
    return read_tables(cluster.run("kafka-consumer-groups", *words).out)


def committed(cluster: Cluster, group: str) -> dict[tuple[str, int], int]:
    return {
        (row["TOPIC"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
        for row in describe(cluster, group, "--offsets")
        if row["CURRENT-OFFSET"] != "-"
    }


def list_groups(cluster: Cluster, *what: str) -> set[str]:
    return set(cluster.run("kafka-consumer-groups", "--list", *what).lines)


def is_there(cluster: Cluster, group: str) -> bool:
    return group in list_groups(cluster)


def _is_stable(cluster: Cluster, group: str, members: int) -> bool:
    if not is_there(cluster, group):
        return False
    (state,) = describe(cluster, group, "--state")
    return (state["STATE"], state["#MEMBERS"]) == ("Stable", f"{members}")
