"""Options that all cluster commands share, and invalid combinations of options."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kohort
from kohort.cli.app import app
from tests.cli.cluster_setup import SETTINGS


@pytest.fixture(scope="module")
def bootstrap_servers() -> Iterator[str]:
    with kohort.Node(settings=SETTINGS) as node:
        yield node.bootstrap_servers


def run(line: str, bootstrap_servers: str | None = None) -> Result:
    environment = {} if bootstrap_servers is None else {"KOHORT_BOOTSTRAP": bootstrap_servers}
    return CliRunner().invoke(app, line.split(), env=environment)


@pytest.mark.parametrize("name", ["--bootstrap", "--bootstrap-server"])
def test_bootstrap_option_has_kafkas_name_too(bootstrap_servers: str, name: str) -> None:
    result = run(f"groups list {name} {bootstrap_servers}")

    assert result.exit_code == 0
    assert result.stdout == "GROUP  TYPE  STATE\n"


def test_missing_bootstrap_option_is_a_usage_error() -> None:
    result = run("groups list")

    assert result.exit_code == 2
    assert "--bootstrap" in result.stderr


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
def test_unreachable_cluster_fails_with_one_sentence(line: str) -> None:
    result = run(line, "127.0.0.1:1")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "kohort: no broker answered at 127.0.0.1:1 (Connection refused)\n"


def test_properties_file_is_read_and_unsupported_options_are_named(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    good, unsupported = tmp_path / "good.properties", tmp_path / "unsupported.properties"
    good.write_text("# ours\nclient.id=operator\nrequest.timeout.ms = 5000\n", "utf-8")
    unsupported.write_text("security.protocol=SASL_SSL\n", "utf-8")

    accepted = run(f"groups lag --command-config {good}", bootstrap_servers)
    rejected = run(f"groups lag --command-config {unsupported}", bootstrap_servers)

    assert accepted.exit_code == 0
    assert rejected.exit_code == 2
    assert "security.protocol is not supported" in rejected.stderr


@pytest.mark.parametrize(
    "options",
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
def test_contradictory_reset_options_are_a_usage_error(
    bootstrap_servers: str, options: str
) -> None:
    result = run(f"groups reset {options}", bootstrap_servers)

    assert result.exit_code == 2
    assert result.stdout == ""


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
def test_ambiguous_selection_is_a_usage_error(bootstrap_servers: str, line: str) -> None:
    result = run(line, bootstrap_servers)

    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["groups", "describe", "\udcff"], 2),
        (["groups", "delete", "\udcff"], 2),
        (["groups", "reset", "a", "--topic", "\udcff:0", "--to-latest"], 2),
        (["groups", "reset", "a", "--topic", "t:99999999999", "--to-latest"], 1),
        (["topics", "create", "\udcff"], 2),
        (["topics", "create", "a", "--config", "retention.ms=\udcff"], 2),
        (["topics", "alter", "\udcff", "--partitions", "3"], 2),
        (["topics", "describe", "\udcff"], 2),
        (["topics", "delete", "\udcff"], 1),
        (["groups", "describe", "evil\x1b[2J"], 1),
    ],
)
def test_names_that_cannot_be_encoded_are_rejected(
    bootstrap_servers: str, args: list[str], code: int
) -> None:
    environment = {"KOHORT_BOOTSTRAP": bootstrap_servers}

    result = CliRunner().invoke(app, args, env=environment)

    assert result.exit_code == code
    assert result.stderr.startswith("kohort: ")
    assert len(result.stderr.splitlines()) == 1
    assert "\x1b" not in result.stderr
