"""kohort migrate, word by word: from a Kohort node to another one, and to an Apache Kafka."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.admin.migrating.migrations import Pair as Moving
from tests.admin.migrating.migrations import alter, assert_same, commit, create
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.cli.streams import running
from tests.cli.transcribing import Transcript, check
from tests.client.clusters import SETTINGS, Cluster, Written, at


@pytest.fixture(params=["kohort", "apache"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Moving]:
    """Nothing is in B, whichever it is."""
    with kohort.Node(settings=SETTINGS) as node:
        a = Cluster(bootstrap_servers=node.bootstrap_servers)
        if request.param == "kohort":
            with kohort.Node(settings=SETTINGS) as other:
                b = Cluster(bootstrap_servers=other.bootstrap_servers)
                yield Moving(a=a, b=b, state=tmp_path / "move.db")
            return
        try:
            kafka = Kafka(tmp_path / "kafka")
        except Unavailable as reason:
            skip(reason)
        with kafka:
            b = Cluster(bootstrap_servers=kafka.bootstrap_servers)
            yield Moving(a=a, b=b, state=tmp_path / "move.db")


def test_a_migration_is_told_from_plan_to_proof(
    pair: Moving, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pair.state.parent)
    set_up(pair.a)
    transcript = Transcript(pair.a.bootstrap_servers)
    where = f"--from {pair.a.bootstrap_servers} --to {pair.b.bootstrap_servers} --state move.db"

    for words in ("--dry-run", "--topic orders --no-groups", "--dry-run", "", ""):
        transcript.run(f"migrate {where} {words}".rstrip())

    is_rewriting = bool(request.config.getoption("--rewrite")) and "kohort" in request.node.name
    check(transcript, "migrate", is_rewriting=is_rewriting)


def set_up(cluster: Cluster) -> None:
    orders = cluster.create_topic(2, "orders")
    cluster.create_topic(1, "empty")
    alter(cluster, orders, {"max.message.bytes": "2000000"})
    when = 1_790_000_000_000
    cluster.produce(
        orders, [Written(partition=n % 2, value=b"%d" % n, timestamp_ms=when) for n in range(20)]
    )
    cluster.delete_before(at(orders, 1), 4)
    commit(cluster, "billing", {at(orders): 7, at(orders, 1): 8})
    commit(cluster, "archive", {at(orders): 10})


def test_machines_get_plan_and_proof_as_json(pair: Moving) -> None:
    topic = create(pair.a)
    pair.a.produce(topic, 5)
    commit(pair.a, "billing", {at(topic): 2})
    transcript = Transcript(pair.a.bootstrap_servers)
    where = f"--from {pair.a.bootstrap_servers} --to {pair.b.bootstrap_servers}"

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


def test_what_forbids_it_is_told_and_nothing_is_done(
    pair: Moving, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pair.state.parent)
    set_up(pair.a)
    pair.b.create_topic(1, "orders")
    transcript = Transcript(pair.a.bootstrap_servers)
    a, b = pair.a.bootstrap_servers, pair.b.bootstrap_servers

    for words in (
        f"--from {a} --to {b}",
        f"--from {a} --to {b} --dry-run --topic orders --topic nowhere --group nobody",
        f"--from {a} --to {a}",
        f"--from {a} --to 127.0.0.1:1",
        f"--from {a} --to {b} --no-groups --group billing",
    ):
        transcript.run(f"migrate {words}")

    is_rewriting = bool(request.config.getoption("--rewrite")) and "kohort" in request.node.name
    check(transcript, "migrate_refused", is_rewriting=is_rewriting)


def test_ctrl_c_says_how_to_go_on(pair: Moving, tmp_path: Path) -> None:
    topic = create(pair.a, partitions=2)
    for _ in range(20):
        pair.a.produce(topic, [Written(partition=n % 2, value=b"x" * 1_000) for n in range(2_000)])
    where = ("--from", pair.a.bootstrap_servers, "--to", pair.b.bootstrap_servers)
    words = ("migrate", *where, "--state", str(pair.state))

    with running(pair.a, *words, at=tmp_path) as command:
        command.wait_for_error("copying")
        code = command.end(signal.SIGINT)
        said = command.said
    with running(pair.a, *words, at=tmp_path) as again:
        assert again.process.wait(120) == 0, again.said

    assert code == 130
    assert f"the same command goes on from {pair.state}" in said
    assert_same(pair, topic, 2)
