"""The exact output of kohort groups, which is the same on a Kohort node and on Apache Kafka."""

from collections.abc import Iterator

import pytest

import kohort
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.cli.cluster_setup import SETTINGS, set_up
from tests.cli.transcript import Transcript, check


@pytest.fixture(scope="module", params=["kohort", "apache"])
def bootstrap_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A cluster for this module alone, because lists show all groups."""
    if request.param == "kohort":
        with kohort.Node(settings=SETTINGS) as node, set_up(node.bootstrap_servers):
            yield node.bootstrap_servers
        return
    try:
        kafka = Kafka(tmp_path_factory.mktemp("kafka"), {"auto.create.topics.enable": "false"})
    except Unavailable as reason:
        skip(reason)
    with kafka, set_up(kafka.bootstrap_servers):
        yield kafka.bootstrap_servers


@pytest.fixture
def transcript(bootstrap_servers: str) -> Transcript:
    return Transcript(bootstrap_servers)


@pytest.fixture
def is_rewriting(request: pytest.FixtureRequest) -> bool:
    # Only the Kohort run writes the expected output.
    is_kohort = "kohort" in request.node.name
    return bool(request.config.getoption("--rewrite")) and is_kohort


def test_output_of_read_commands(transcript: Transcript, *, is_rewriting: bool) -> None:
    for line in (
        "groups list",
        "groups list --state empty --type classic",
        "groups list --type consumer",
        "groups list --json",
        "groups describe billing shipping",
        "groups describe shipping --verbose",
        "groups describe billing --json",
        "groups members billing",
        "groups members billing --verbose",
        "groups members shipping",
        "groups members billing --json",
        "groups offsets billing",
        "groups offsets --all-groups --verbose",
        "groups offsets archive --json",
        "groups lag",
        "groups lag shipping archive --json",
    ):
        transcript.run(line)

    check(transcript, "read", is_rewriting=is_rewriting)


def test_output_of_rejected_commands(transcript: Transcript, *, is_rewriting: bool) -> None:
    for line in (
        "groups list --state unknown",
        "groups describe missing",
        "groups offsets billing missing",
        "groups lag missing",
        "groups reset shipping --topic orders:x --to-latest",
        "groups reset shipping --topic orders --by-duration soon",
        "groups reset shipping --topic orders --to-datetime noon",
        "groups reset shipping --topic missing --to-latest",
        "groups reset shipping --topic orders:7 --to-latest",
        "groups reset shipping --topic orders:2 --shift-by 1",
        "groups reset shipping --from-file /does/not/exist",
        "groups reset billing --topic orders --to-latest",
        "groups delete billing missing",
        "groups delete-offsets billing --topic orders:0",
        "groups delete-offsets missing --topic orders",
        "groups remove-member billing --instance-id rack-9",
        "groups list --command-config /does/not/exist",
    ):
        transcript.run(line)

    check(transcript, "rejected", is_rewriting=is_rewriting)


def test_output_of_reset_and_delete(transcript: Transcript, *, is_rewriting: bool) -> None:
    for line in (
        "groups reset shipping --topic orders --to-earliest",
        "groups reset shipping --topic orders:0,2 --to-latest --json",
        "groups reset shipping archive --all-topics --to-offset 1",
        "groups reset --all-groups --topic refunds --to-latest",
        "groups reset shipping --all-topics --to-current --export",
        "groups reset shipping archive --all-topics --shift-by -1 --export",
        "groups reset shipping --all-topics --shift-by 100 --execute",
        "groups offsets shipping",
        "groups reset newcomer --topic refunds --to-datetime 2001-01-01T00:00 --execute --json",
        "groups reset newcomer --topic refunds --by-duration 1h",
        "groups offsets newcomer",
        "groups delete-offsets shipping --topic orders:1 --topic refunds",
        "groups delete-offsets shipping --topic orders:0 --json",
        "groups delete newcomer --json",
        "groups list",
    ):
        transcript.run(line)

    check(transcript, "reset", is_rewriting=is_rewriting)
