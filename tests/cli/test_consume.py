"""kohort consume: records on stdout, assignments on stderr, and offsets that are true."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.admin.migrating.migrations import commit, committed
from tests.cli.streams import LATELY_MS, lines, run, running
from tests.client.clusters import SETTINGS, Cluster, Written, at


@pytest.fixture(scope="module", params=["kohort", "apache"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "apache":
        kafka = request.getfixturevalue("apache_kafka")
        yield Cluster(bootstrap_servers=kafka.bootstrap_servers)
        return
    with kohort.Node(settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


def test_a_topic_is_read_from_its_beginning_to_its_end(cluster: Cluster) -> None:
    topic = cluster.create_topic(partitions=2)
    cluster.produce(topic, [Written(partition=n % 2, value=b"%d" % n) for n in range(10)])

    ended = run(cluster, "consume", topic, "--from-beginning", "--until-end")

    assert ended.exit_code == 0
    assert sorted(map(int, ended.stdout.split())) == [*range(10)]
    assert ended.stderr == f"kohort: reading {topic}-0 from 0, {topic}-1 from 0\n"


def test_fields_and_json_say_more(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(
        topic,
        [Written(key=b"k", value=None, headers=[("h", b"1")], timestamp_ms=LATELY_MS), Written()],
    )
    words = ("consume", topic, "--from-beginning", "--until-end")

    plain = lines(
        cluster, *words, "--show", "offset", "--show", "key", "--show", "headers", "--null", "-"
    )
    machine = [json.loads(line) for line in lines(cluster, *words, "--json", "--quiet")]

    assert plain == ["0\tk\th=1\t-", "1\t-\t\tvalue"]
    assert machine[0] == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": LATELY_MS,
        "timestamp_type": "create_time",
        "key": "k",
        "value": None,
        "headers": [{"name": "h", "value": "1"}],
    }
    assert (machine[1]["value"], machine[1]["headers"]) == ("value", [])


@pytest.mark.parametrize(
    ("words", "values"),
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
def test_it_begins_where_it_is_told_to(words: list[str], values: list[int]) -> None:
    with kohort.Node(settings=SETTINGS) as node:
        cluster = Cluster(bootstrap_servers=node.bootstrap_servers)
        topic = cluster.create_topic(partitions=2)
        cluster.produce(topic, [Written(value=b"%d" % n, timestamp_ms=n or 1) for n in range(10)])

        said = lines(cluster, "consume", topic, "--until-end", *words)

    assert [int(each) for each in said] == values


def test_a_group_goes_on_where_it_was(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 10)
    group = cluster.name_group()
    words = ("consume", topic, "--group", group, "--from-beginning", "--assignor", "sticky")

    first = run(cluster, *words, "--max", "4")
    second = run(cluster, *words, "--max", "6")

    assert first.stdout.split() == ["0", "1", "2", "3"]
    assert second.stdout.split() == ["4", "5", "6", "7", "8", "9"]
    assert first.stderr.splitlines() == [
        f"kohort: assigned {topic}-0; holds 1",
        f"kohort: revoked {topic}-0",
    ]
    assert committed(cluster, group) == {at(topic): 10}


def test_offsets_are_left_alone_where_that_is_wished(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 5)
    group = cluster.name_group()
    commit(cluster, group, {at(topic): 2})

    said = lines(cluster, "consume", topic, "--group", group, "--max", "3", "--no-commit")

    assert said == ["2", "3", "4"]
    assert committed(cluster, group) == {at(topic): 2}


def test_fewer_records_than_were_wished_for_are_a_failure(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)
    words = ("consume", topic, "--from-beginning", "--timeout", "1")

    few = run(cluster, *words, "--max", "5", "--quiet")
    all_there_are = run(cluster, *words, "--quiet")

    assert (few.exit_code, few.stderr) == (1, "kohort: only 2 of 5 records came\n")
    assert (all_there_are.exit_code, all_there_are.stdout) == (0, "0\n1\n")


def test_ctrl_c_commits_and_leaves(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    group = cluster.name_group()
    words = ("consume", topic, "--group", group, "--from-beginning", "--instance-id", "rack-1")
    with running(cluster, *words, at=tmp_path) as command:
        command.wait_for("2")
        assert command.end(signal.SIGINT) == 0

        assert command.written == "0\n1\n2\n"
        assert "revoked" in command.said
    assert committed(cluster, group) == {at(topic): 3}


def test_a_closed_pipe_ends_it_quietly(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2_000)
    words = ("consume", topic, "--from-beginning", "--quiet")
    with running(cluster, *words, at=tmp_path, is_piped=True) as command:
        assert command.process.stdout is not None
        command.process.stdout.readline()
        command.process.stdout.close()
        cluster.produce(topic, 2_000)

        assert command.process.wait(30) == 0
        assert command.said == ""


def test_what_is_not_there_is_told_in_one_sentence(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    nobody = Cluster(bootstrap_servers="127.0.0.1:1")

    for where, words in (
        (cluster, ("consume", "nowhere")),
        (cluster, ("consume", "nowhere", "--group", "billing")),
        (cluster, ("consume", topic, "--partition", "7")),
        (nobody, ("consume", "orders")),
    ):
        ended = run(where, *words)
        assert ended.exit_code == 1
        assert ended.stderr.startswith("kohort: ")
        assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
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
def test_what_makes_no_sense_is_refused(words: list[str]) -> None:
    with kohort.Node(settings=SETTINGS) as node:
        cluster = Cluster(bootstrap_servers=node.bootstrap_servers)
        ended = run(cluster, "consume", "orders", *words)

    assert ended.exit_code == 2
    assert not ended.stdout


def test_a_pattern_reads_what_it_matches(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 1)
    group = cluster.name_group()

    said = lines(
        cluster, "consume", f"^{topic}$", "--group", group, "--from-beginning", "--max", "1"
    )

    assert said == ["0"]


def test_processes_share_a_topic(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic(partitions=2)
    group = cluster.name_group()
    words = ("consume", topic, "--group", group, "--kafka", "heartbeat.interval.ms=100")
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with running(cluster, *words, at=folders[0]) as first:
        first.wait_for_error(f"assigned {topic}-0,1; holds 2")
        with running(cluster, *words, at=folders[1]) as second:
            second.wait_for_error("; holds 1")
            first.wait_for_error("; holds 1")
            assert second.end(signal.SIGTERM) == 0
        assert first.end(signal.SIGTERM) == 0
