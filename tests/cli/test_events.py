"""kohort events: what a node noticed, in lines for people and in JSON for machines."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from kohort.cli.events import KINDS, show
from kohort.node.events_table import KINDS as WRITTEN
from tests.apache.cluster import Kafka
from tests.cli.scenes import SETTINGS, join, set_up, settle
from tests.cli.streams import lines, run, running
from tests.cli.transcribing import Transcript, check
from tests.client.clusters import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A group of two has come and gone."""
    with kohort.Node(settings=SETTINGS) as node:
        with set_up(node.bootstrap_servers):
            pass
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


def test_every_kind_that_a_node_writes_is_known() -> None:
    assert set(KINDS) == set(WRITTEN.values())


def test_events_are_told_in_lines(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    transcript = Transcript(cluster.bootstrap_servers)
    for line in (
        "events --group billing",
        "events --kind rebalance-ended --kind member-gone",
        "events --group nobody",
        "events --since 2999-01-01",
        "events --kind rebalance-end",
        "events --since nonsense",
    ):
        transcript.run(line)

    check(transcript, "events", is_rewriting=bool(request.config.getoption("--rewrite")))


def test_events_are_told_as_they_were_written(cluster: Cluster) -> None:
    told = [json.loads(line) for line in lines(cluster, "events", "--json", "--since", "1h")]
    ended = [event for event in told if event["event"] == "rebalance-ended"]

    assert {event["group_id"] for event in told} >= {"billing"}
    assert [event["generation"] for event in ended] == [1, 2, 3, 4][: len(ended)]
    assert ended[1]["participants"][0]["got"]


def test_it_follows_until_ctrl_c(tmp_path: Path) -> None:
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


def test_a_stock_kafka_has_none(apache_kafka: Kafka) -> None:
    ended = run(Cluster(bootstrap_servers=apache_kafka.bootstrap_servers), "events")

    assert ended.exit_code == 1
    assert "a stock Kafka keeps no such events" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_an_event_that_is_newer_than_this_is_shown_as_it_is() -> None:
    line = show({"event": "moon-rose", "at": 0, "group_id": "a\x1b[2Jb", "phase": "full"})

    assert line == '1970-01-01T00:00:00.000Z  a\\x1b[2Jb  moon-rose  {"phase":"full"}'
