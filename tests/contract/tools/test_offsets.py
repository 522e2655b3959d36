"""kafka-get-offsets and kafka-delete-records."""

from pathlib import Path

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import commit, delete_records, write


def offsets(cluster: Cluster, *what: str) -> dict[str, int]:
    lines = cluster.run("kafka-get-offsets", *what).lines
    split = (line.rsplit(":", 1) for line in lines)
    return {place: int(offset) for place, offset in split if offset}


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("-1", [5, 2]),
        ("latest", [5, 2]),
        ("-2", [1, 0]),
        ("earliest", [1, 0]),
        ("-3", [2, 1]),
        ("max-timestamp", [2, 1]),
        ("-4", [1, 0]),
        ("earliest-local", [1, 0]),
        ("2500", [1, 1]),
        ("1000", [1, 0]),
    ],
)
def test_offsets_are_found_by_timestamp(
    cluster: Cluster, tmp_path: Path, timestamp: str, expected: list[int]
) -> None:
    topic = cluster.create_topic(2, "--config", "retention.ms=-1")
    write(cluster, topic, 5, partition=0, times_ms=[1000, 3000, 9000, 4000, 5000])
    write(cluster, topic, 2, partition=1, times_ms=[1000, 3000])
    delete_records(cluster, tmp_path, {(topic, 0): 1})

    found = offsets(cluster, "--topic", topic, "--time", timestamp)

    assert found == {f"{topic}:0": expected[0], f"{topic}:1": expected[1]}


def test_a_timestamp_after_the_last_record_has_no_offset(cluster: Cluster) -> None:
    topic = cluster.create_topic(1, "--config", "retention.ms=-1")
    write(cluster, topic, 1, times_ms=[1000])

    assert offsets(cluster, "--topic", topic, "--time", "2000") == {}


def test_partitions_are_selected_by_topic_and_number(cluster: Cluster) -> None:
    topic, other = cluster.create_topic(4), cluster.create_topic()
    # Kafka creates the offsets topic for the first group.
    commit(cluster, cluster.unique_name("group"), {(other, 0): 0})

    some = offsets(cluster, "--topic-partitions", f"{topic}:1-3,{other}:0")
    listed = offsets(cluster, "--topic", topic, "--partitions", "0,3")
    everything = offsets(cluster)
    without = offsets(cluster, "--exclude-internal-topics")

    assert some.keys() == {f"{topic}:1", f"{topic}:2", f"{other}:0"}
    assert listed.keys() == {f"{topic}:0", f"{topic}:3"}
    assert any(place.startswith("__consumer_offsets:") for place in everything)
    assert not any(place.startswith("__consumer_offsets:") for place in without)


def test_records_before_an_offset_are_deleted(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic(2)
    write(cluster, topic, 6, partition=0)
    write(cluster, topic, 6, partition=1)

    lines = delete_records(cluster, tmp_path, {(topic, 0): 4, (topic, 1): -1})
    arguments = (
        "--topic",
        topic,
        "--partition",
        "0",
        "--offset",
        "earliest",
        "--max-messages",
        "1",
    )
    first = cluster.run("kafka-console-consumer", *arguments)

    assert sorted(lines) == [
        f"partition: {topic}-0\tlow_watermark: 4",
        f"partition: {topic}-1\tlow_watermark: 6",
    ]
    assert offsets(cluster, "--topic", topic, "--time", "-2") == {f"{topic}:0": 4, f"{topic}:1": 6}
    assert first.lines == ["value 4"]


def test_records_of_unknown_partitions_cannot_be_deleted(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    write(cluster, topic, 2)

    (beyond,) = delete_records(cluster, tmp_path, {(topic, 0): 9})

    assert "OffsetOutOfRangeException" in beyond
    assert offsets(cluster, "--topic", topic, "--time", "-2") == {f"{topic}:0": 0}
