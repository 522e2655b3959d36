"""The exact output of kohort topics, on a Kohort node and on Apache Kafka."""

from collections.abc import Iterator

import pytest

import kohort
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.cli.cluster_setup import SETTINGS, write
from tests.cli.transcript import Transcript, check


@pytest.fixture(scope="module", params=["kohort", "apache"])
def bootstrap_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "kohort":
        with kohort.Node(settings=SETTINGS) as node:
            yield node.bootstrap_servers
        return
    try:
        kafka = Kafka(tmp_path_factory.mktemp("kafka"), {"auto.create.topics.enable": "false"})
    except Unavailable as reason:
        skip(reason)
    with kafka:
        yield kafka.bootstrap_servers


def test_topics_are_created_altered_and_deleted(
    request: pytest.FixtureRequest, bootstrap_servers: str
) -> None:
    transcript = Transcript(bootstrap_servers)

    transcript.run("topics create orders --partitions 2 --config retention.ms=86400000")
    transcript.run("topics create orders --if-not-exists")
    transcript.run("topics create prices --config cleanup.policy=compact --replication-factor 1")
    write(bootstrap_servers, {("orders", 0): 3})
    for line in (
        "topics list --exclude-internal",
        "topics list --exclude-internal --json",
        "topics describe orders prices",
        "topics alter orders --partitions 3 --delete-config retention.ms",
        "topics alter orders --config max.message.bytes=1000 --config retention.ms=3600000",
        "topics describe orders --json",
        "topics delete prices",
        "topics delete prices --if-exists",
        "topics list --exclude-internal",
    ):
        transcript.run(line)

    is_rewriting = request.config.getoption("--rewrite") and "kohort" in request.node.name
    check(transcript, "topics", is_rewriting=bool(is_rewriting))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("topics create missing --partitions 0", 2),
        ("topics create missing --config retention.ms", 2),
        ("topics create missing --config retention.ms=soon", 2),
        ("topics create missing --config no.such.setting=1", 2),
        ("topics create missing --replication-factor 3", 2),
        ("topics create not/a/name", 2),
        ("topics alter missing", 2),
        ("topics alter missing --partitions 2", 1),
        ("topics alter missing --config retention.ms=1", 1),
        ("topics alter missing --config retention.ms=1 --delete-config retention.ms", 2),
        ("topics delete missing", 1),
        ("topics describe missing", 1),
        ("topics list --bootstrap nonsense", 2),
    ],
)
def test_failed_command_prints_no_traceback(bootstrap_servers: str, line: str, code: int) -> None:
    transcript = Transcript(bootstrap_servers)

    stdout = transcript.run(line)

    assert stdout == ""
    assert transcript.text.splitlines()[-1] == f"exit {code}"
    assert "Traceback" not in transcript.text
