"""kohort produce delivers each line as a record, or reports it."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from kohort.types import Topic
from tests.admin.migration.cluster_pair import read_all
from tests.cli.command_process import RECENT_MS, lines, run, running
from tests.client.node_cluster import SETTINGS, Cluster, at
from tests.wait import wait_until


@pytest.fixture(scope="module", params=["kohort", "apache"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "apache":
        kafka = request.getfixturevalue("apache_kafka")
        yield Cluster(bootstrap_servers=kafka.bootstrap_servers)
        return
    with kohort.Node(settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


def records_of(cluster: Cluster, topic: Topic) -> list[tuple[object, ...]]:
    (records,) = read_all(cluster, topic, 1)
    return [(each.key, each.value, each.headers) for each in records]


def test_each_line_becomes_a_record(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    output = lines(cluster, "produce", topic, stdin=b"one\n\ntwo \xff\nlast")

    assert output == [f"4 records delivered to {topic}: 4 in partition 0"]
    values = [value for _, value, _ in records_of(cluster, topic)]
    assert values == [b"one", b"", b"two \xff", b"last"]


def test_keys_nulls_and_headers_are_produced(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    file = tmp_path / "lines"
    file.write_bytes(b"a\t1\nb\tNULL\nNULL\t3\n")
    args = ["--key-separator", "\\t", "--null", "NULL", "--header", "source=file=1"]

    lines(cluster, "produce", topic, "--file", str(file), "--compression", "zstd", *args)

    headers = (("source", b"file=1"),)
    assert records_of(cluster, topic) == [
        (b"a", b"1", headers),
        (b"b", None, headers),
        (None, b"3", headers),
    ]


def test_json_sets_partition_and_timestamp(cluster: Cluster) -> None:
    topic = cluster.create_topic(partitions=3)
    record = {"value": "v", "key_base64": "/w==", "partition": 2, "timestamp": RECENT_MS}

    output = lines(
        cluster, "produce", topic, "--input", "json", "--json", stdin=json.dumps(record) + "\n"
    )

    assert json.loads(output[0]) == {
        "topic": topic,
        "delivered": 1,
        "failed": 0,
        "partitions": {"2": 1},
    }
    with cluster.consumer(group_id=None) as consumer:
        assert consumer.end_offsets([at(topic, 2)]) == {at(topic, 2): 1}


def test_consumed_json_produces_identical_records(cluster: Cluster, tmp_path: Path) -> None:
    first, second = cluster.create_topic(), cluster.create_topic()
    lines(cluster, "produce", first, "--key", "k", "--header", "h=1", stdin=b"\x00\xff\ntext\n")
    file = tmp_path / "records.json"
    file.write_text(run(cluster, "consume", first, "--offset", "0", "--until-end", "--json").stdout)

    lines(cluster, "produce", second, "--input", "json", "--file", str(file))

    original, copy = read_all(cluster, first, 1)[0], read_all(cluster, second, 1)[0]
    assert records_of(cluster, first) == records_of(cluster, second)
    assert [each.timestamp for each in original] == [each.timestamp for each in copy]


def test_failed_lines_are_reported_and_exit_code_is_1(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    large = "x" * 2_000_000

    result = run(
        cluster, "produce", topic, "--key-separator", ":", stdin=f"a:1\nnone\nb:{large}\nc:3\n"
    )

    assert result.exit_code == 1
    assert result.stdout == f"2 records delivered to {topic}, 2 failed: 2 in partition 0\n"
    first, second = sorted(result.stderr.splitlines())
    assert first == "kohort: line 2 was not delivered: no key separator ':' found"
    assert second.startswith("kohort: line 3 was not delivered: ")


def test_missing_partition_is_a_failed_delivery(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    result = run(cluster, "produce", topic, "--partition", "7", "--timeout", "5", stdin="a\n")

    assert result.exit_code == 1
    assert "line 1 was not delivered" in result.stderr


def test_missing_topic_fails_with_one_sentence() -> None:
    with kohort.Node(settings=SETTINGS) as node:
        result = run(Cluster(bootstrap_servers=node.bootstrap_servers), "produce", "nowhere")

    assert result.exit_code == 1
    assert result.stderr.startswith("kohort: cannot write to topic 'nowhere'")
    assert result.stderr.count("\n") == 1


def test_unreachable_cluster_fails_with_one_sentence() -> None:
    unreachable = Cluster(bootstrap_servers="127.0.0.1:1")

    result = run(unreachable, "produce", "orders", "--timeout", "1", stdin="a\n")

    assert result.exit_code == 1
    assert result.stderr.startswith("kohort: no broker answered at 127.0.0.1:1")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        ["--input", "json", "--key-separator", ":"],
        ["--key-separator", ""],
        ["--header", "nonsense"],
        ["--kafka", "nonsense"],
        ["--kafka", "no.such.option=1"],
        ["--file", "/no/such/file"],
        ["--command-config", "/no/such/file"],
        ["--acks", "2"],
    ],
)
def test_invalid_options_are_usage_errors_before_connecting(args: list[str]) -> None:
    unreachable = Cluster(bootstrap_servers="127.0.0.1:1")

    assert run(unreachable, "produce", "orders", *args, stdin="a\n").exit_code == 2


def test_ctrl_c_delivers_the_lines_read_so_far(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    with running(cluster, "produce", topic, at=tmp_path, stdin=subprocess.PIPE) as command:
        assert command.process.stdin is not None
        command.process.stdin.write("one\ntwo\n")
        command.process.stdin.flush()
        with cluster.consumer(group_id=None) as consumer:
            wait_until(lambda: consumer.end_offsets([at(topic)])[at(topic)] == 2, 30, "delivery")
        assert command.end(signal.SIGINT) == 130
        assert command.stdout.startswith("2 records delivered")
