"""kafka-consumer-groups --reset-offsets, with every option."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import commit, committed, delete_records, member, write
from tests.contract.tools.tool_output import read_tables

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

Plan = dict[tuple[str, int], int]


def reset(cluster: Cluster, *arguments: str) -> Plan:
    """The new offsets that it printed."""
    ended = cluster.run("kafka-consumer-groups", "--reset-offsets", *arguments)
    assert "Error" not in ended.out, ended
    rows = read_tables(ended.out)
    return {(row["TOPIC"], int(row["PARTITION"])): int(row["NEW-OFFSET"]) for row in rows}


def now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def in_words(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--to-earliest", 2),
        ("--to-latest", 10),
        ("--to-offset 7", 7),
        ("--to-offset 99", 10),
        ("--to-offset 0", 2),
        ("--shift-by 3", 8),
        ("--shift-by -2", 3),
        ("--shift-by -50", 2),
        ("--shift-by 50", 10),
        ("--to-current", 5),
    ],
)
def test_a_dry_run_shows_the_offsets_before_the_reset(
    cluster: Cluster, tmp_path: Path, option: str, expected: int
) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    write(cluster, topic, 10)
    delete_records(cluster, tmp_path, {(topic, 0): 2})
    commit(cluster, group, {(topic, 0): 5})

    shown = reset(cluster, "--group", group, "--topic", topic, *option.split(), "--dry-run")
    meanwhile = committed(cluster, group)
    done = reset(cluster, "--group", group, "--topic", topic, *option.split(), "--execute")

    assert shown == done == {(topic, 0): expected}
    assert meanwhile == {(topic, 0): 5}
    assert committed(cluster, group) == {(topic, 0): expected}


def test_a_datetime_resets_to_the_first_later_offset(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    days = [now_ms() - day * DAY_MS for day in (5, 4, 3, 2, 1)]
    write(cluster, topic, 5, times_ms=days)
    scope = ("--group", group, "--topic", topic)

    middle = in_words(days[2] - HOUR_MS)
    at_moment = reset(cluster, *scope, "--to-datetime", middle, "--execute")
    after_all = reset(cluster, *scope, "--to-datetime", in_words(now_ms() + HOUR_MS), "--dry-run")
    before_all = reset(cluster, *scope, "--to-datetime", "2001-01-01T00:00:00.000", "--dry-run")

    assert at_moment == committed(cluster, group) == {(topic, 0): 2}
    assert after_all == {(topic, 0): 5}
    assert before_all == {(topic, 0): 0}


def test_a_datetime_can_have_a_time_zone(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    moment_ms = (now_ms() - DAY_MS) // 1000 * 1000
    write(cluster, topic, 3, times_ms=[moment_ms - HOUR_MS, moment_ms, moment_ms + HOUR_MS])

    there = in_words(moment_ms + 2 * HOUR_MS) + "+02:00"
    found = reset(cluster, "--group", group, "--topic", topic, "--to-datetime", there, "--dry-run")

    assert found == {(topic, 0): 1}


def test_a_duration_is_subtracted_from_now(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    write(cluster, topic, 4, times_ms=[now_ms() - hours * HOUR_MS for hours in (30, 20, 10, 0)])
    scope = ("--group", group, "--topic", topic)

    day = reset(cluster, *scope, "--by-duration", "P1D", "--execute")
    hours = reset(cluster, *scope, "--by-duration", "PT15H30M", "--dry-run")

    assert day == committed(cluster, group) == {(topic, 0): 1}
    assert hours == {(topic, 0): 2}


def test_single_partitions_can_be_reset(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(4), cluster.unique_name("group")
    for partition in range(4):
        write(cluster, topic, 3, partition=partition)
    commit(cluster, group, {(topic, partition): 1 for partition in range(4)})

    done = reset(cluster, "--group", group, "--topic", f"{topic}:1,3", "--to-latest", "--execute")

    assert done == {(topic, 1): 3, (topic, 3): 3}
    assert committed(cluster, group) == {
        (topic, 0): 1,
        (topic, 1): 3,
        (topic, 2): 1,
        (topic, 3): 3,
    }


def test_all_topics_means_those_with_committed_offsets(cluster: Cluster) -> None:
    first, second, other = (cluster.create_topic() for _ in range(3))
    group = cluster.unique_name("group")
    for topic in (first, second, other):
        write(cluster, topic, 6)
    commit(cluster, group, {(first, 0): 1, (second, 0): 2})

    done = reset(cluster, "--group", group, "--all-topics", "--to-latest", "--execute")

    assert done == committed(cluster, group) == {(first, 0): 6, (second, 0): 6}


def test_an_export_can_be_imported(cluster: Cluster, tmp_path: Path) -> None:
    topic, group = cluster.create_topic(2), cluster.unique_name("group")
    write(cluster, topic, 6, partition=0)
    write(cluster, topic, 6, partition=1)
    commit(cluster, group, {(topic, 0): 2, (topic, 1): 4})
    scope = ("--reset-offsets", "--group", group, "--all-topics", "--to-current")

    exported = cluster.run("kafka-consumer-groups", *scope, "--export", "--dry-run").out
    reset(cluster, "--group", group, "--all-topics", "--to-latest", "--execute")
    (tmp_path / "plan.csv").write_text(exported.strip() + "\n", "utf-8")
    restored = reset(
        cluster, "--group", group, "--from-file", f"{tmp_path / 'plan.csv'}", "--execute"
    )

    rows = [row for row in csv.reader(exported.splitlines()) if row]
    assert sorted(rows) == [[topic, "0", "2"], [topic, "1", "4"]]
    assert restored == committed(cluster, group) == {(topic, 0): 2, (topic, 1): 4}


def test_one_file_resets_several_groups(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    first, second = cluster.unique_name("group"), cluster.unique_name("group")
    write(cluster, topic, 6)
    lines = f"{first},{topic},0,1\n{second},{topic},0,5\n"
    (tmp_path / "plan.csv").write_text(lines, "utf-8")

    arguments = ("--from-file", f"{tmp_path / 'plan.csv'}", "--execute")
    reset(cluster, "--group", first, "--group", second, *arguments)

    assert committed(cluster, first) == {(topic, 0): 1}
    assert committed(cluster, second) == {(topic, 0): 5}


def test_offsets_of_a_group_with_members_cannot_be_reset(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    write(cluster, topic, 3)
    arguments = (
        "--reset-offsets",
        "--group",
        group,
        "--topic",
        topic,
        "--to-earliest",
        "--execute",
    )

    with member(cluster, topic, group):
        refused = cluster.run("kafka-consumer-groups", *arguments)

    assert "Error" in refused.out
    assert "Stable" in refused.out
    assert committed(cluster, group) == {(topic, 0): 3}


def test_an_unknown_topic_cannot_be_reset(cluster: Cluster) -> None:
    group, topic = cluster.unique_name("group"), cluster.unique_name("missing")

    arguments = ("--reset-offsets", "--group", group, "--topic", f"{topic}:0", "--to-earliest")
    ended = cluster.run("kafka-consumer-groups", *arguments, "--execute")

    assert "UnknownTopicOrPartitionException" in ended.out
