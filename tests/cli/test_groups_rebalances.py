"""kohort groups rebalances and remove-member: what a Kohort node tells, and what a Kafka cannot."""

from collections.abc import Iterator

import pytest

import kohort
from kohort.admin import history
from kohort.admin.cluster import open_cluster
from kohort.types import GroupId, Millis
from tests.apache.cluster import Kafka
from tests.cli.scenes import SETTINGS, join, settle
from tests.cli.transcribing import Transcript, check
from tests.waiting import wait_until


@pytest.fixture
def node() -> Iterator[str]:
    with kohort.Node(settings=SETTINGS) as started:
        yield started.bootstrap_servers


@pytest.fixture
def is_rewriting(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


def wait_for_rebalances(bootstrap_servers: str, count: int) -> None:
    """Events follow what they tell of, and nobody waits for them."""
    with open_cluster(bootstrap_servers) as cluster:

        def has_all() -> bool:
            found = history.rebalances(cluster, GroupId("billing"), Millis(0))
            return len([each for each in found if each.ended_ms is not None]) >= count

        wait_until(has_all, 30, f"{count} rebalances")


def test_rebalances_are_told_with_their_culprits(node: str, *, is_rewriting: bool) -> None:
    transcript = Transcript(node)
    transcript.run("topics create orders --partitions 3")

    with join(node, "billing-1") as first:
        settle(node, first)
        with join(node, "billing-2", "rack-2") as second:
            settle(node, first, second)
        transcript.run(
            "groups remove-member billing --instance-id rack-2 --reason 'the rack is gone'"
        )
        settle(node, first)
    wait_for_rebalances(node, 4)

    transcript.run("groups rebalances billing")
    transcript.run("groups rebalances billing --last 1 --json")
    transcript.run("groups rebalances nobody")
    transcript.run("groups rebalances billing --since yesterday")
    check(transcript, "rebalances", is_rewriting=is_rewriting)


def test_a_group_that_has_not_rebalanced_is_said_to_be_calm(
    node: str, *, is_rewriting: bool
) -> None:
    transcript = Transcript(node)
    transcript.run("topics create orders --partitions 3")
    with join(node, "billing-1") as first:
        settle(node, first)
    wait_for_rebalances(node, 2)

    transcript.run("groups reset calm --topic orders --to-earliest --execute")
    transcript.run("groups rebalances calm")

    check(transcript, "calm", is_rewriting=is_rewriting)


def test_all_members_are_removed_at_once(node: str, *, is_rewriting: bool) -> None:
    transcript = Transcript(node)
    transcript.run("topics create orders --partitions 3")

    with join(node, "billing-1") as first, join(node, "billing-2", "rack-2") as second:
        settle(node, first, second)
        transcript.run("groups remove-member billing --all-members --json")

    check(transcript, "removing", is_rewriting=is_rewriting)


def test_a_kafka_tells_only_the_present_generation(
    apache_kafka: Kafka, *, is_rewriting: bool
) -> None:
    bootstrap_servers, group = apache_kafka.bootstrap_servers, "told-by-kafka"
    transcript = Transcript(bootstrap_servers)
    transcript.run("topics create orders-of-kafka --partitions 3")

    with join(bootstrap_servers, "billing-1", group=group, topic="orders-of-kafka") as first:
        settle(bootstrap_servers, first, group=group)
        transcript.run(f"groups rebalances {group}")
    transcript.run(f"groups rebalances {group} --json")
    transcript.run("groups rebalances nobody")

    check(transcript, "rebalances-of-kafka", is_rewriting=is_rewriting)
