"""The output of kohort events, as text and as JSON."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.apache.shared import SharedKafka
from tests.cli.cluster_setup import SETTINGS, join, set_up, settle
from tests.cli.command_process import lines, run, running
from tests.cli.transcript import Transcript, check
from tests.client.node_cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A node whose group had two members, which have left."""
    with kohort.Node(settings=SETTINGS) as node:
        with set_up(node.bootstrap_servers):
            pass
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


def test_output_of_events_as_text(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    transcript = Transcript(cluster.bootstrap_servers)
    for line in (
        "events --group billing",
        "events --kind rebalance-ended --kind member-gone",
        "events --group missing",
        "events --since 2999-01-01",
        "events --kind rebalance-end",
        "events --since nonsense",
    ):
        transcript.run(line)

    check(transcript, "events", is_rewriting=bool(request.config.getoption("--rewrite")))


def test_events_as_json_are_unchanged(cluster: Cluster) -> None:
    events = [json.loads(line) for line in lines(cluster, "events", "--json", "--since", "1h")]
    ended = [event for event in events if event["event"] == "rebalance-ended"]

    assert {event["group_id"] for event in events} >= {"billing"}
    assert [event["generation"] for event in ended] == [1, 2, 3, 4][: len(ended)]
    assert ended[1]["participants"][0]["got"]


def test_follow_waits_for_events_until_ctrl_c(tmp_path: Path) -> None:
    with kohort.Node(settings=SETTINGS) as node:
        cluster = Cluster(bootstrap_servers=node.bootstrap_servers)
        with running(cluster, "events", "--follow", "--json", at=tmp_path) as command:
            command.wait_for_error("waiting for it")
            cluster.create_topic(3, "orders")
            with join(node.bootstrap_servers, "billing-1") as member:
                settle(node.bootstrap_servers, member)
            seen = json.loads(command.wait_for("rebalance-ended"))
            assert command.end(signal.SIGINT) == 0

    assert seen["trigger"] == "member-joined"


def test_apache_kafka_has_no_events(apache_kafka: SharedKafka) -> None:
    ended = run(Cluster(bootstrap_servers=apache_kafka.bootstrap_servers), "events")

    assert ended.exit_code == 1
    assert "Apache Kafka writes no group events" in ended.stderr
    assert ended.stderr.count("\n") == 1
