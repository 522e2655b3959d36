"""The exact output of kohort groups rebalances and remove-member."""

from collections.abc import Iterator

import pytest

import kohort
from kohort.admin import rebalance_history
from kohort.admin.cluster_connection import open_cluster
from kohort.types import GroupId, Millis
from tests.apache.shared import SharedKafka
from tests.cli.cluster_setup import SETTINGS, join, settle
from tests.cli.transcript import Transcript, check
from tests.wait import wait_until


@pytest.fixture
def node() -> Iterator[str]:
    with kohort.Node(settings=SETTINGS) as started:
        yield started.bootstrap_servers


@pytest.fixture
def is_rewriting(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


def wait_for_rebalances(bootstrap_servers: str, count: int) -> None:
    """Events are written after the response, so wait for them."""
    with open_cluster(bootstrap_servers) as cluster:

        def has_all() -> bool:
            found = rebalance_history.list_rebalances(cluster, GroupId("billing"), Millis(0))
            return len([each for each in found if each.ended_ms is not None]) >= count

        wait_until(has_all, 30, f"{count} rebalances")


def test_rebalances_have_cause_and_initiator(node: str, *, is_rewriting: bool) -> None:
    transcript = Transcript(node)
    transcript.run("topics create orders --partitions 3")

    with join(node, "billing-1") as first:
        settle(node, first)
        with join(node, "billing-2", "rack-2") as second:
            settle(node, first, second)
        transcript.run("groups remove-member billing --instance-id rack-2 --reason 'rack removed'")
        settle(node, first)
    wait_for_rebalances(node, 4)

    transcript.run("groups rebalances billing")
    transcript.run("groups rebalances billing --last 1 --json")
    transcript.run("groups rebalances missing")
    transcript.run("groups rebalances billing --since yesterday")
    check(transcript, "rebalances", is_rewriting=is_rewriting)


def test_group_without_rebalances_has_an_empty_table(node: str, *, is_rewriting: bool) -> None:
    transcript = Transcript(node)
    transcript.run("topics create orders --partitions 3")
    with join(node, "billing-1") as first:
        settle(node, first)
    wait_for_rebalances(node, 2)

    transcript.run("groups reset idle --topic orders --to-earliest --execute")
    transcript.run("groups rebalances idle")

    check(transcript, "no-rebalances", is_rewriting=is_rewriting)


def test_all_members_are_removed_together(node: str, *, is_rewriting: bool) -> None:
    transcript = Transcript(node)
    transcript.run("topics create orders --partitions 3")

    with join(node, "billing-1") as first, join(node, "billing-2", "rack-2") as second:
        settle(node, first, second)
        transcript.run("groups remove-member billing --all-members --json")

    check(transcript, "remove-member", is_rewriting=is_rewriting)


def test_apache_kafka_has_only_the_current_generation(
    apache_kafka: SharedKafka, *, is_rewriting: bool
) -> None:
    bootstrap_servers, group = apache_kafka.bootstrap_servers, "on-apache-kafka"
    transcript = Transcript(bootstrap_servers)
    transcript.run("topics create orders-on-apache-kafka --partitions 3")

    with join(bootstrap_servers, "billing-1", group=group, topic="orders-on-apache-kafka") as first:
        settle(bootstrap_servers, first, group=group)
        transcript.run(f"groups rebalances {group}")
        # An empty group without offsets is soon deleted.
        transcript.run(f"groups rebalances {group} --json")
    transcript.run("groups rebalances missing")
    transcript.run("topics delete orders-on-apache-kafka")

    check(transcript, "rebalances-apache-kafka", is_rewriting=is_rewriting)
