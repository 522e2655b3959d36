"""docs/reference/cli.md is up to date, and shells complete commands, groups and topics."""

import os

import pytest
from typer.testing import CliRunner

import kohort
from kohort.admin import offsets, topics
from kohort.admin.cluster_connection import open_cluster
from kohort.cli.app import app
from kohort.types import GroupId, Offset, Topic
from tests.cli.cluster_setup import SETTINGS, partition_of
from tests.tidy.repository import read
from tools.docgen import cli_page


def test_page_is_generated_from_the_commands() -> None:
    assert read("docs/reference/cli.md") == cli_page.render()


@pytest.mark.parametrize("verb", ["groups", "topics"])
def test_every_cluster_command_has_an_example(verb: str) -> None:
    sections = cli_page.render().split("\n### ")

    found = [each for each in sections if each.startswith(f"kohort {verb} ")]

    assert len(found) > 3
    for section in found:
        name = section.splitlines()[0]
        assert f"```\n{name}" in section, name


def complete(line: str, environment: dict[str, str]) -> list[str]:
    """Return the completions that a shell offers for an unfinished line."""
    request = {
        "_KOHORT_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    ended = CliRunner().invoke(app, [], env={**request, **environment}, prog_name="kohort")
    return ended.stdout.split()


def test_shells_complete_commands_groups_and_topics() -> None:
    with kohort.Node(settings=SETTINGS) as node, open_cluster(node.bootstrap_servers) as cluster:
        topics.create_topic(cluster, Topic("orders"))
        for group in ("billing", "budget", "shipping"):
            offsets.alter_offsets(cluster, GroupId(group), {partition_of("orders", 0): Offset(0)})
        environment = {"KOHORT_BOOTSTRAP": node.bootstrap_servers}

        commands = complete("kohort groups re", environment)
        groups = complete("kohort groups describe b", environment)
        names = complete("kohort topics describe o", environment)

    assert commands == ["rebalances", "reset", "remove-member"]
    assert groups == ["billing", "budget"]
    assert names == ["orders"]


def test_completion_without_a_reachable_cluster_is_empty() -> None:
    assert "KOHORT_BOOTSTRAP" not in os.environ

    assert complete("kohort groups describe b", {}) == []
    assert complete("kohort groups describe b", {"KOHORT_BOOTSTRAP": "127.0.0.1:1"}) == []
