"""kohort consume prints records to stdout, assignments to stderr, and commits offsets."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.admin.migration.cluster_pair import commit, committed
from tests.cli.command_process import RECENT_MS, lines, run, running
from tests.client.malformed_topic import malformed_topic
from tests.client.node_cluster import SETTINGS, Cluster, ProducedRecord, at


@pytest.fixture(scope="module", params=["kohort", "apache"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "apache":
        kafka = request.getfixturevalue("apache_kafka")
        yield Cluster(bootstrap_servers=kafka.bootstrap_servers)
        return
    with kohort.Node(settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


def test_topic_is_read_from_start_to_end(cluster: Cluster) -> None:
    topic = cluster.create_topic(partitions=2)
    cluster.produce(topic, [ProducedRecord(partition=n % 2, value=b"%d" % n) for n in range(10)])

    result = run(cluster, "consume", topic, "--from-beginning", "--until-end")

    assert result.exit_code == 0
    assert sorted(map(int, result.stdout.split())) == [*range(10)]
    assert result.stderr == f"kohort: reading {topic}-0 from 0, {topic}-1 from 0\n"


def test_fields_and_json_are_printed(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(
        topic,
        [
            ProducedRecord(key=b"k", value=None, headers=[("h", b"1")], timestamp_ms=RECENT_MS),
            ProducedRecord(),
        ],
    )
    args = ("consume", topic, "--from-beginning", "--until-end")

    plain = lines(
        cluster, *args, "--show", "offset", "--show", "key", "--show", "headers", "--null", "-"
    )
    machine = [json.loads(line) for line in lines(cluster, *args, "--json", "--quiet")]

    assert plain == ["0\tk\th=1\t-", "1\t-\t\tvalue"]
    assert machine[0] == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": RECENT_MS,
        "timestamp_type": "create_time",
        "key": "k",
        "value": None,
        "headers": [{"name": "h", "value": "1"}],
    }
    assert (machine[1]["value"], machine[1]["headers"]) == ("value", [])


@pytest.mark.parametrize(
    ("args", "values"),
    [
        (["--offset", "7"], [7, 8, 9]),
        (["--offset", "-2"], [8, 9]),
        (["--offset", "-200"], [*range(10)]),
        (["--offset", "earliest", "--max", "2"], [0, 1]),
        (["--offset", "latest"], []),
        (["--offset", "200"], []),
        (["--partition", "0", "--from-beginning"], [*range(10)]),
        (["--partition", "1", "--from-beginning"], []),
        (["--since", "1970-01-01T00:00:00.005Z"], [5, 6, 7, 8, 9]),
        (["--since", "2999-01-01"], []),
    ],
)
def test_start_position_options(args: list[str], values: list[int]) -> None:
    with kohort.Node(settings=SETTINGS) as node:
        cluster = Cluster(bootstrap_servers=node.bootstrap_servers)
        topic = cluster.create_topic(partitions=2)
        cluster.produce(
            topic, [ProducedRecord(value=b"%d" % n, timestamp_ms=n or 1) for n in range(10)]
        )

        output = lines(cluster, "consume", topic, "--until-end", *args)

    assert [int(each) for each in output] == values


def test_group_continues_at_committed_offsets(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 10)
    group = cluster.name_group()
    args = ("consume", topic, "--group", group, "--from-beginning", "--assignor", "sticky")

    first = run(cluster, *args, "--max", "4")
    second = run(cluster, *args, "--max", "6")

    assert first.stdout.split() == ["0", "1", "2", "3"]
    assert second.stdout.split() == ["4", "5", "6", "7", "8", "9"]
    assert first.stderr.splitlines() == [
        f"kohort: assigned {topic}-0; holds 1",
        f"kohort: revoked {topic}-0",
    ]
    assert committed(cluster, group) == {at(topic): 10}


def test_no_commit_leaves_offsets_unchanged(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 5)
    group = cluster.name_group()
    commit(cluster, group, {at(topic): 2})

    output = lines(cluster, "consume", topic, "--group", group, "--max", "3", "--no-commit")

    assert output == ["2", "3", "4"]
    assert committed(cluster, group) == {at(topic): 2}


def test_fewer_records_than_max_fail(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)
    args = ("consume", topic, "--from-beginning", "--timeout", "1")

    too_few = run(cluster, *args, "--max", "5", "--quiet")
    all_there_are = run(cluster, *args, "--quiet")

    assert (too_few.exit_code, too_few.stderr) == (1, "kohort: only 2 of 5 records arrived\n")
    assert (all_there_are.exit_code, all_there_are.stdout) == (0, "0\n1\n")


def test_ctrl_c_commits_and_leaves_the_group(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    group = cluster.name_group()
    args = ("consume", topic, "--group", group, "--from-beginning", "--instance-id", "rack-1")
    with running(cluster, *args, at=tmp_path) as command:
        command.wait_for("2")
        assert command.end(signal.SIGINT) == 0

        assert command.stdout == "0\n1\n2\n"
        assert "revoked" in command.stderr
    assert committed(cluster, group) == {at(topic): 3}


def test_closed_pipe_is_no_error(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2_000)
    args = ("consume", topic, "--from-beginning", "--quiet")
    with running(cluster, *args, at=tmp_path, is_piped=True) as command:
        assert command.process.stdout is not None
        command.process.stdout.readline()
        command.process.stdout.close()
        cluster.produce(topic, 2_000)

        assert command.process.wait(30) == 0
        assert command.stderr == ""


def test_missing_topic_partition_or_cluster_fails_with_one_sentence(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    unreachable = Cluster(bootstrap_servers="127.0.0.1:1")

    for where, args in (
        (cluster, ("consume", "nowhere")),
        (cluster, ("consume", "nowhere", "--group", "billing")),
        (cluster, ("consume", topic, "--partition", "7")),
        (unreachable, ("consume", "orders")),
    ):
        result = run(where, *args)
        assert result.exit_code == 1
        assert result.stderr.startswith("kohort: ")
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        ["--group", "g", "--partition", "0"],
        ["--group", "g", "--offset", "0"],
        ["--group", "g", "--until-end"],
        ["--group", "g", "--since", "1h"],
        ["--instance-id", "rack"],
        ["--assignor", "range"],
        ["--no-commit"],
        ["--offset", "nonsense"],
        ["--since", "nonsense"],
        ["--offset", "0", "--from-beginning"],
        ["--kafka", "fetch.min.bites=1"],
        ["--show", "nonsense"],
        ["^pattern"],
    ],
)
def test_invalid_options_are_usage_errors(args: list[str]) -> None:
    with kohort.Node(settings=SETTINGS) as node:
        cluster = Cluster(bootstrap_servers=node.bootstrap_servers)
        result = run(cluster, "consume", "orders", *args)

    assert result.exit_code == 2
    assert not result.stdout


def test_pattern_subscribes_to_matching_topics(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 1)
    group = cluster.name_group()

    output = lines(
        cluster, "consume", f"^{topic}$", "--group", group, "--from-beginning", "--max", "1"
    )

    assert output == ["0"]


def test_two_processes_share_the_partitions(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic(partitions=2)
    group = cluster.name_group()
    args = ("consume", topic, "--group", group, "--kafka", "heartbeat.interval.ms=100")
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with running(cluster, *args, at=folders[0]) as first:
        first.wait_for_error(f"assigned {topic}-0,1; holds 2")
        with running(cluster, *args, at=folders[1]) as second:
            second.wait_for_error("; holds 1")
            first.wait_for_error("; holds 1")
            assert second.end(signal.SIGTERM) == 0
        assert first.end(signal.SIGTERM) == 0


def test_a_malformed_batch_ends_the_command_unless_it_is_skipped(tmp_path: Path) -> None:
    # Record 4 has a wrong offset delta; the consumer numbers records by their order in the batch.
    args = ("--from-beginning", "--until-end", "--quiet", "--json")
    with malformed_topic(tmp_path) as (cluster, topic):
        refused = run(cluster, "consume", topic, *args)
        skipped = run(cluster, "consume", topic, *args, "--skip-malformed")
        group = cluster.name_group()
        grouped = ("--from-beginning", "--group", group, "--max", "5", "--skip-malformed")
        in_group = run(cluster, "consume", topic, *grouped)
        end = committed(cluster, group)

    assert refused.exit_code == 1
    assert [json.loads(line)["offset"] for line in refused.stdout.splitlines()] == [0]
    assert refused.stderr.startswith(f"kohort: {topic}-0 is corrupt at offset 1: ")
    assert refused.stderr.endswith("; --skip-malformed continues without it\n")
    assert skipped.exit_code == 0
    assert [json.loads(line)["offset"] for line in skipped.stdout.splitlines()] == [0, 4, 5, 6, 12]
    what = f"of {topic}-0, which cannot be "
    assert [line.partition("decoded: ")[0] for line in skipped.stderr.splitlines()] == [
        f"kohort: skipped offsets 1 to 3 {what}",
        f"kohort: skipped offsets 7 to 9 {what}",
        f"kohort: skipped offsets 10 to 11 {what}",
        "kohort: skipped 8 offsets in 3 ranges that cannot be decoded",
    ]
    assert (in_group.exit_code, end) == (0, {at(topic): 13})
