"""The exact output of kohort migrate, to another Kohort node and to Apache Kafka."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.admin.migration.cluster_pair import ClusterPair, alter, assert_same, commit, create
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.cli.command_process import running
from tests.cli.transcript import Transcript, check
from tests.client.node_cluster import SETTINGS, Cluster, ProducedRecord, at


@pytest.fixture(params=["kohort", pytest.param("apache", marks=pytest.mark.full)])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClusterPair]:
    """Cluster B is empty."""
    with kohort.Node(settings=SETTINGS) as node:
        a = Cluster(bootstrap_servers=node.bootstrap_servers)
        if request.param == "kohort":
            with kohort.Node(settings=SETTINGS) as other:
                b = Cluster(bootstrap_servers=other.bootstrap_servers)
                yield ClusterPair(source=a, target=b, state=tmp_path / "move.db")
            return
        try:
            kafka = Kafka(tmp_path / "kafka")
        except Unavailable as reason:
            skip(reason)
        with kafka:
            b = Cluster(bootstrap_servers=kafka.bootstrap_servers)
            yield ClusterPair(source=a, target=b, state=tmp_path / "move.db")


def test_output_of_a_migration(
    pair: ClusterPair, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pair.state.parent)
    set_up(pair.source)
    transcript = Transcript(pair.source.bootstrap_servers)
    source, target = pair.source.bootstrap_servers, pair.target.bootstrap_servers
    where = f"--from {source} --to {target} --state move.db"

    for args in ("--dry-run", "--topic orders --no-groups", "--dry-run", "", ""):
        transcript.run(f"migrate {where} {args}".rstrip())

    is_rewriting = bool(request.config.getoption("--rewrite")) and "kohort" in request.node.name
    check(transcript, "migrate", is_rewriting=is_rewriting)


def set_up(cluster: Cluster) -> None:
    orders = cluster.create_topic(2, "orders")
    cluster.create_topic(1, "empty")
    alter(cluster, orders, {"max.message.bytes": "2000000"})
    when = 1_790_000_000_000
    cluster.produce(
        orders,
        [ProducedRecord(partition=n % 2, value=b"%d" % n, timestamp_ms=when) for n in range(20)],
    )
    cluster.delete_before(at(orders, 1), 4)
    commit(cluster, "billing", {at(orders): 7, at(orders, 1): 8})
    commit(cluster, "archive", {at(orders): 10})


def test_plan_and_result_as_json(pair: ClusterPair) -> None:
    topic = create(pair.source)
    pair.source.produce(topic, 5)
    commit(pair.source, "billing", {at(topic): 2})
    transcript = Transcript(pair.source.bootstrap_servers)
    where = f"--from {pair.source.bootstrap_servers} --to {pair.target.bootstrap_servers}"

    plan = json.loads(transcript.run(f"migrate {where} --state {pair.state} --json --dry-run"))
    done = json.loads(transcript.run(f"migrate {where} --state {pair.state} --json"))

    assert (plan["topics"][0]["topic"], plan["topics"][0]["step"]) == (topic, "create")
    assert plan["groups"] == [{"group": "billing", "offsets": 1, "has_members": False}]
    assert plan["refusals"] == []
    assert done["partitions"][0]["copied"] == 5
    assert done["groups"] == [
        {
            "group": "billing",
            "compared": 1,
            "offsets": [{"topic": topic, "partition": 0, "offset_in_a": 2, "offset_in_b": 2}],
        }
    ]
    assert done["failures"] == []


def test_refused_migration_reports_all_reasons(
    pair: ClusterPair, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pair.state.parent)
    set_up(pair.source)
    pair.target.create_topic(1, "orders")
    transcript = Transcript(pair.source.bootstrap_servers)
    a, b = pair.source.bootstrap_servers, pair.target.bootstrap_servers

    for args in (
        f"--from {a} --to {b}",
        f"--from {a} --to {b} --dry-run --topic orders --topic missing --group missing",
        f"--from {a} --to {a}",
        f"--from {a} --to 127.0.0.1:1",
        f"--from {a} --to {b} --no-groups --group billing",
    ):
        transcript.run(f"migrate {args}")

    is_rewriting = bool(request.config.getoption("--rewrite")) and "kohort" in request.node.name
    check(transcript, "migrate_refused", is_rewriting=is_rewriting)


def test_ctrl_c_prints_how_to_continue(pair: ClusterPair, tmp_path: Path) -> None:
    topic = create(pair.source, partitions=2)
    for _ in range(20):
        pair.source.produce(
            topic, [ProducedRecord(partition=n % 2, value=b"x" * 1_000) for n in range(2_000)]
        )
    where = ("--from", pair.source.bootstrap_servers, "--to", pair.target.bootstrap_servers)
    args = ("migrate", *where, "--state", str(pair.state))

    with running(pair.source, *args, at=tmp_path) as command:
        command.wait_for_error("copying")
        code = command.end(signal.SIGINT)
        stderr = command.stderr
    with running(pair.source, *args, at=tmp_path) as again:
        assert again.process.wait(120) == 0, again.stderr

    assert code == 130
    assert f"run the same command to continue from {pair.state}" in stderr
    assert_same(pair, topic, 2)
