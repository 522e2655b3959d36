"""Options that all commands about clusters share, and wishes that contradict themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kohort
from kohort.cli.app import app
from tests.cli.scenes import SETTINGS


@pytest.fixture(scope="module")
def bootstrap_servers() -> Iterator[str]:
    with kohort.Node(settings=SETTINGS) as node:
        yield node.bootstrap_servers


def run(line: str, bootstrap_servers: str | None = None) -> Result:
    environment = {} if bootstrap_servers is None else {"KOHORT_BOOTSTRAP": bootstrap_servers}
    return CliRunner().invoke(app, line.split(), env=environment)


@pytest.mark.parametrize("name", ["--bootstrap", "--bootstrap-server"])
def test_a_cluster_is_named_in_kafkas_way_too(bootstrap_servers: str, name: str) -> None:
    ended = run(f"groups list {name} {bootstrap_servers}")

    assert ended.exit_code == 0
    assert ended.stdout == "GROUP  TYPE  STATE\n"


def test_without_a_cluster_a_command_makes_no_sense() -> None:
    ended = run("groups list")

    assert ended.exit_code == 2
    assert "--bootstrap" in ended.stderr


@pytest.mark.parametrize(
    "line",
    [
        "groups list",
        "groups describe a",
        "groups lag",
        "groups rebalances a",
        "groups reset a --all-topics --to-latest",
        "groups delete a",
        "topics list",
        "topics create a",
        "topics delete a",
    ],
)
def test_a_cluster_that_is_not_there_fails_with_one_sentence(line: str) -> None:
    ended = run(line, "127.0.0.1:1")

    assert ended.exit_code == 1
    assert ended.stdout == ""
    assert ended.stderr == ("kohort: no broker can be reached: 127.0.0.1:1: Connection refused\n")


def test_a_properties_file_is_taken_or_refused_by_name(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    good, secret = tmp_path / "good.properties", tmp_path / "secret.properties"
    good.write_text("# ours\nclient.id=operator\nrequest.timeout.ms = 5000\n", "utf-8")
    secret.write_text("security.protocol=SASL_SSL\n", "utf-8")

    taken = run(f"groups lag --command-config {good}", bootstrap_servers)
    refused = run(f"groups lag --command-config {secret}", bootstrap_servers)

    assert taken.exit_code == 0
    assert refused.exit_code == 2
    assert "security.protocol is not supported" in refused.stderr


@pytest.mark.parametrize(
    "words",
    [
        "a --to-latest",
        "a --topic t",
        "--topic t --to-latest",
        "a --all-groups --topic t --to-latest",
        "a --topic t --all-topics --to-latest",
        "a --topic t --to-latest --to-earliest",
        "a --topic t --to-offset -1",
        "a --topic t --to-latest --execute --dry-run",
        "a --topic t --to-latest --export --json",
        "a --topic t --from-file plan.csv",
    ],
)
def test_a_reset_that_contradicts_itself_is_refused(bootstrap_servers: str, words: str) -> None:
    ended = run(f"groups reset {words}", bootstrap_servers)

    assert ended.exit_code == 2
    assert ended.stdout == ""


@pytest.mark.parametrize(
    "line",
    [
        "groups describe",
        "groups describe a --all-groups",
        "groups lag a --all-groups",
        "groups delete",
        "groups delete-offsets a",
        "groups remove-member a",
        "groups remove-member a --all-members --instance-id b",
        "groups rebalances a --last 0",
    ],
)
def test_a_command_that_is_not_clear_is_refused(bootstrap_servers: str, line: str) -> None:
    ended = run(line, bootstrap_servers)

    assert ended.exit_code == 2
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["groups", "describe", "\udcff"], 2),
        (["groups", "delete", "\udcff"], 2),
        (["groups", "reset", "a", "--topic", "\udcff:0", "--to-latest"], 2),
        (["groups", "reset", "a", "--topic", "t:99999999999", "--to-latest"], 2),
        (["topics", "create", "\udcff"], 2),
        (["topics", "create", "a", "--config", "retention.ms=\udcff"], 2),
        (["topics", "alter", "\udcff", "--partitions", "3"], 2),
        (["topics", "describe", "\udcff"], 2),
        (["topics", "delete", "\udcff"], 1),
        (["groups", "describe", "evil\x1b[2J"], 1),
    ],
)
def test_names_that_cannot_be_sent_are_refused(
    bootstrap_servers: str, words: list[str], code: int
) -> None:
    environment = {"KOHORT_BOOTSTRAP": bootstrap_servers}

    ended = CliRunner().invoke(app, words, env=environment)

    assert ended.exit_code == code
    assert ended.stderr.startswith("kohort: ")
    assert len(ended.stderr.splitlines()) == 1
    assert "\x1b" not in ended.stderr
