"""The node's pages say what its tables say, and the tables leave nothing out."""

import ast
import dataclasses
import re
import subprocess
import sys
from typing import get_args

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.coordinator import notes
from kohort.log import settings_table
from kohort.node import journal
from kohort.node.config import SETTINGS, TOPIC_DEFAULTS
from kohort.node.docs import PAGES, main
from kohort.node.events_page import events_markdown, kind_of
from kohort.node.events_table import ALWAYS, FIELDS, KINDS, MEANINGS, SPELLED
from kohort.node.markdown import table
from kohort.node.metrics_table import METRICS
from tests.tidy.repository import ROOMS, read

NOTES = get_args(notes.Note)
PARTS = (notes.Party, notes.Participant, notes.Removal)

Call = tuple[str, tuple[str, ...]]


def find_journal_calls(text: str) -> list[Call]:
    """What a file says to the journal: events with their facts."""
    return [
        (ast.literal_eval(node.args[0]), tuple(str(keyword.arg) for keyword in node.keywords))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("journal.say", "journal.warn")
    ]


# The pages


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_tables_say(name: str) -> None:
    is_fresh = read(f"docs/{name}.md") == PAGES[name]()

    refresh = f"python -m kohort.node.docs {name} > docs/{name}.md"
    assert is_fresh, f"docs/{name}.md is out of date; refresh it with: {refresh}"


def test_the_module_prints_a_page_when_it_is_run() -> None:
    command = [sys.executable, "-m", "kohort.node.docs", "settings"]

    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    assert printed == PAGES["settings"]()


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["events", "settings"]])
def test_a_page_there_is_not_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "events|metrics|settings" in capsys.readouterr().err


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert table(("a",), [("b|c",)]) == "| a |\n| --- |\n| b\\|c |"


# Events


def test_every_note_has_a_name_and_a_meaning() -> None:
    assert set(KINDS) == set(NOTES)
    assert set(MEANINGS) == {*NOTES, *PARTS}
    assert len(set(KINDS.values())) == len(KINDS)


@pytest.mark.parametrize("cls", [*NOTES, *PARTS], ids=lambda cls: cls.__name__)
def test_every_field_of_a_note_is_explained(cls: type) -> None:
    fields = [field.name for field in dataclasses.fields(cls)]

    assert [name for name in fields if name not in ALWAYS] == list(FIELDS[cls])


def test_every_event_is_told_with_its_fields_and_an_example() -> None:
    page = events_markdown()

    for cls, kind in KINDS.items():
        (section,) = re.findall(rf"^## {kind}\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
        assert f'"event": "{kind}"' in section
        for name in FIELDS[cls]:
            assert f"| `{name}` | " in section
            assert f'"{name}": ' in section


def test_every_word_an_event_may_use_is_on_the_page() -> None:
    page = events_markdown()

    for words in (notes.TRIGGERS, notes.ENDINGS, notes.JOIN_ENDS, notes.DEPARTURES):
        assert [word for word in words if f"| `{word}` | " not in page] == []


def test_only_fields_that_there_are_are_spelled_otherwise() -> None:
    assert [(cls, name) for cls, name in SPELLED if name not in FIELDS[cls]] == []


def test_a_kind_nobody_has_a_word_for_is_caught() -> None:
    assert kind_of(tuple[int, ...]) == "list of number"
    with pytest.raises(AssertionError, match="no word for"):
        kind_of(bytes)


# Figures and the journal


def test_every_figure_is_on_the_page() -> None:
    page = PAGES["metrics"]()

    assert [each.name for each in METRICS if f"| `{each.name}` | {each.kind} | " not in page] == []


def test_the_journal_says_only_what_is_explained() -> None:
    said = {
        call
        for path in sorted(ROOMS.rglob("*.py"))
        for call in find_journal_calls(path.read_text())
    }

    assert said == {(event, facts) for event, (facts, _) in journal.WORDS.items()}


def test_what_is_said_to_the_journal_is_seen() -> None:
    text = 'journal.say("a-b", x=1, y=2)\nif z:\n    journal.warn("c")\nother.say("d")'

    assert find_journal_calls(text) == [("a-b", ("x", "y")), ("c", ())]


# Settings


def test_every_setting_is_on_the_page() -> None:
    page = PAGES["settings"]()

    topic_settings = [each for each in settings_table.SETTINGS.values() if not each.is_internal]
    for name in (*SETTINGS, *(each.name for each in topic_settings)):
        assert f"\n| `{name}` | " in page
    for name, own in TOPIC_DEFAULTS.items():
        assert re.search(
            rf"^\| `{re.escape(name)}` .*\| `{re.escape(own)}` \|$", page, re.MULTILINE
        )


def test_help_points_to_the_settings_and_the_figures() -> None:
    result = CliRunner().invoke(app, ["serve", "--help"], terminal_width=100)

    assert result.exit_code == 0
    assert "--settings" in result.stdout
    assert "--metrics" in result.stdout
