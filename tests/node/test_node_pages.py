"""The generated pages of the node are up to date, and their source tables are complete."""

import ast
import dataclasses
import re
import subprocess
import sys
from typing import get_args

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.coordinator import events
from kohort.events.fields import ALWAYS, FIELDS
from kohort.events.schema import EVENTS
from kohort.log import topic_config as topic_settings
from kohort.node import log_events
from kohort.node.config import SETTINGS, TOPIC_DEFAULTS
from kohort.node.events_topic import EVENT_NAMES
from kohort.node.metrics_table import METRICS
from tests.tidy.repository import ROOT, read
from tools.docgen.events_page import events_markdown, kind_of
from tools.docgen.markdown import table
from tools.docgen.node_pages import PAGES, main

EVENT_CLASSES = get_args(events.GroupEvent)

NODE_SOURCES = sorted((ROOT / "src" / "kohort" / "node").rglob("*.py"))

LOG_FUNCTIONS = ("log_events.info", "log_events.warning", "log_events.internal_error")

Call = tuple[str, tuple[str, ...]]


def find_log_calls(text: str) -> list[Call]:
    """Find the log messages of a source file: event names with the names of their fields."""
    return [
        (ast.literal_eval(node.args[0]), tuple(str(keyword.arg) for keyword in node.keywords))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in LOG_FUNCTIONS
    ]


# The pages


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_up_to_date(name: str) -> None:
    is_fresh = read(f"docs/reference/{name}.md") == PAGES[name]()

    refresh = f"python -m tools.docgen.node_pages {name} > docs/reference/{name}.md"
    assert is_fresh, f"docs/reference/{name}.md is out of date; refresh it with: {refresh}"


def test_running_the_module_prints_a_page() -> None:
    command = [sys.executable, "-m", "tools.docgen.node_pages", "settings"]

    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    assert printed == PAGES["settings"]()


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["events", "settings"]])
def test_unknown_page_name_is_rejected(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "events|metrics|settings" in capsys.readouterr().err


def test_pipe_in_a_table_cell_is_escaped() -> None:
    assert table(("a",), [("b|c",)]) == "| a |\n| --- |\n| b\\|c |"


# Events


def test_every_event_class_has_an_event_name() -> None:
    assert set(EVENT_NAMES) == set(EVENT_CLASSES)
    assert set(EVENT_NAMES.values()) == set(EVENTS)


@pytest.mark.parametrize("cls", EVENT_CLASSES, ids=lambda cls: cls.__name__)
def test_event_class_has_the_fields_of_the_schema(cls: type[events.GroupEvent]) -> None:
    fields = [field.name for field in dataclasses.fields(cls)]

    assert [name for name in fields if name not in ALWAYS] == list(FIELDS[EVENTS[EVENT_NAMES[cls]]])


def test_events_page_has_fields_and_an_example_for_every_event() -> None:
    page = events_markdown()

    for kind, cls in EVENTS.items():
        (section,) = re.findall(rf"^## {kind}\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
        assert f'"event": "{kind}"' in section
        for name in FIELDS[cls]:
            assert f"| `{name}` | " in section
            assert f'"{name}": ' in section


def test_events_page_lists_every_enum_value() -> None:
    page = events_markdown()

    for words in (events.TRIGGERS, events.REBALANCE_RESULTS, events.JOIN_ENDS, events.DEPARTURES):
        assert [word for word in words if f"| `{word}` | " not in page] == []


def test_kind_of_rejects_an_unknown_type() -> None:
    assert kind_of(tuple[int, ...]) == "list of number"
    with pytest.raises(AssertionError, match="unknown field type"):
        kind_of(bytes)


# Metrics and log events


def test_metrics_page_lists_every_metric() -> None:
    page = PAGES["metrics"]()

    assert [each.name for each in METRICS if f"| `{each.name}` | {each.kind} | " not in page] == []


def test_log_events_table_matches_the_log_calls() -> None:
    logged = {call for path in NODE_SOURCES for call in find_log_calls(path.read_text("utf-8"))}

    assert logged == {(event, fields) for event, (fields, _) in log_events.LOG_EVENTS.items()}


def test_find_log_calls_sees_nested_calls_and_ignores_other_modules() -> None:
    text = 'log_events.info("a-b", x=1, y=2)\nif z:\n    log_events.warning("c")\nother.info("d")'

    assert find_log_calls(text) == [("a-b", ("x", "y")), ("c", ())]


# Settings


def test_settings_page_lists_every_setting() -> None:
    page = PAGES["settings"]()

    shown = [each for each in topic_settings.SETTINGS.values() if not each.is_internal]
    for name in (*SETTINGS, *(each.name for each in shown)):
        assert f"\n| `{name}` | " in page
    for name, own in TOPIC_DEFAULTS.items():
        assert re.search(
            rf"^\| `{re.escape(name)}` .*\| `{re.escape(own)}` \|$", page, re.MULTILINE
        )


def test_serve_help_mentions_settings_and_metrics() -> None:
    result = CliRunner().invoke(app, ["serve", "--help"], terminal_width=100)

    assert result.exit_code == 0
    assert "--settings" in result.stdout
    assert "--metrics" in result.stdout
