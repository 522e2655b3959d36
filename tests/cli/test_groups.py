"""kohort groups, word by word, on a Kohort node and on an Apache Kafka: they say the same."""

from collections.abc import Iterator

import pytest

import kohort
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.cli.scenes import SETTINGS, set_up
from tests.cli.transcribing import Transcript, check


@pytest.fixture(scope="module", params=["kohort", "apache"])
def bootstrap_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A cluster that nobody else uses: lists are of all there is."""
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
    # Only one of the two says what is right.
    is_kohort = "kohort" in request.node.name
    return bool(request.config.getoption("--rewrite")) and is_kohort


def test_groups_are_looked_at(transcript: Transcript, *, is_rewriting: bool) -> None:
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

    check(transcript, "looking", is_rewriting=is_rewriting)


def test_what_makes_no_sense_is_refused(transcript: Transcript, *, is_rewriting: bool) -> None:
    for line in (
        "groups list --state sleepy",
        "groups describe nobody",
        "groups offsets billing nobody",
        "groups lag nobody",
        "groups reset shipping --topic orders:x --to-latest",
        "groups reset shipping --topic orders --by-duration soon",
        "groups reset shipping --topic orders --to-datetime noon",
        "groups reset shipping --topic missing --to-latest",
        "groups reset shipping --topic orders:7 --to-latest",
        "groups reset shipping --topic orders:2 --shift-by 1",
        "groups reset shipping --from-file /does/not/exist",
        "groups reset billing --topic orders --to-latest",
        "groups delete billing nobody",
        "groups delete-offsets billing --topic orders:0",
        "groups delete-offsets nobody --topic orders",
        "groups remove-member billing --instance-id rack-9",
        "groups list --command-config /does/not/exist",
    ):
        transcript.run(line)

    check(transcript, "refusing", is_rewriting=is_rewriting)


def test_offsets_are_reset_and_deleted(transcript: Transcript, *, is_rewriting: bool) -> None:
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

    check(transcript, "resetting", is_rewriting=is_rewriting)
