"""docs/cli.md says what the commands say of themselves, and every shell can complete them."""

import os

import pytest
from typer.testing import CliRunner

import kohort
from kohort.admin import offsets, topics
from kohort.admin.cluster import open_cluster
from kohort.cli import docs
from kohort.cli.app import app
from kohort.types import GroupId, Offset, Topic
from tests.cli.scenes import SETTINGS, place
from tests.tidy.repository import read


def test_the_page_is_what_the_commands_say() -> None:
    assert read("docs/cli.md") == docs.render()


@pytest.mark.parametrize("verb", ["groups", "topics"])
def test_every_command_about_clusters_has_an_example(verb: str) -> None:
    sections = docs.render().split("\n### ")

    mine = [each for each in sections if each.startswith(f"kohort {verb} ")]

    assert len(mine) > 3
    for section in mine:
        name = section.splitlines()[0]
        assert f"```\n{name}" in section, name


def complete(line: str, environment: dict[str, str]) -> list[str]:
    """What a shell offers for a line that ends in the middle of a word."""
    asked = {
        "_KOHORT_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    ended = CliRunner().invoke(app, [], env={**asked, **environment}, prog_name="kohort")
    return ended.stdout.split()


def test_shells_complete_commands_groups_and_topics() -> None:
    with kohort.Node(settings=SETTINGS) as node, open_cluster(node.bootstrap_servers) as cluster:
        topics.create_topic(cluster, Topic("orders"))
        for group in ("billing", "budget", "shipping"):
            offsets.alter_offsets(cluster, GroupId(group), {place("orders", 0): Offset(0)})
        environment = {"KOHORT_BOOTSTRAP": node.bootstrap_servers}

        commands = complete("kohort groups re", environment)
        groups = complete("kohort groups describe b", environment)
        names = complete("kohort topics describe o", environment)

    assert commands == ["rebalances", "reset", "remove-member"]
    assert groups == ["billing", "budget"]
    assert names == ["orders"]


def test_completion_without_a_cluster_offers_nothing() -> None:
    assert "KOHORT_BOOTSTRAP" not in os.environ

    assert complete("kohort groups describe b", {}) == []
    assert complete("kohort groups describe b", {"KOHORT_BOOTSTRAP": "127.0.0.1:1"}) == []
