"""docs/reference/consumer.md is up to date and complete."""

import ast
import inspect
import re
import subprocess
import sys

import kohort
from kohort.client import errors
from kohort.client.log_events import EVENTS
from kohort.client.options_table import OPTIONS
from tests.tidy.repository import PACKAGES, read
from tools.docgen.consumer_page import consumer_markdown

Call = tuple[str, tuple[str, ...]]


def find_log_calls(text: str) -> list[Call]:
    """The log events of a file with their fields."""
    return [
        (ast.literal_eval(node.args[0]), tuple(str(keyword.arg) for keyword in node.keywords))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("log_events.info", "log_events.warn")
    ]


def test_the_page_is_up_to_date() -> None:
    is_fresh = read("docs/reference/consumer.md") == consumer_markdown()

    refresh = "python -m tools.docgen.consumer_page > docs/reference/consumer.md"
    assert is_fresh, f"docs/reference/consumer.md is out of date; refresh it with: {refresh}"


def test_the_module_prints_the_page() -> None:
    command = [sys.executable, "-m", "tools.docgen.consumer_page"]

    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    assert printed == consumer_markdown()


def test_the_page_lists_every_option_error_and_log_event() -> None:
    page = consumer_markdown()

    for name in OPTIONS:
        assert f"\n| `{name}` | " in page
    for name, found in vars(errors).items():
        if isinstance(found, type) and issubclass(found, Exception):
            assert f"\n| `{name}` | " in page
            assert inspect.getdoc(found), f"{name} does not say what it means"
    for word in EVENTS:
        assert f"\n| `{word}` | " in page


def test_the_page_lists_every_method() -> None:
    page = consumer_markdown()
    methods = [name for name in vars(kohort.Consumer) if not name.startswith("_")]

    assert methods
    assert [name for name in methods if not re.search(rf"\b{name}\b", page)] == []


def test_every_log_event_is_documented() -> None:
    said = {
        call
        for path in sorted((PACKAGES / "client").rglob("*.py"))
        for call in find_log_calls(path.read_text(encoding="utf-8"))
    }

    assert said == {(word, facts) for word, (facts, _) in EVENTS.items()}


def test_log_calls_are_found_in_source() -> None:
    text = 'log_events.info("a-b", x=1, y=2)\nif z:\n    log_events.warn("c")\nother.info("d")'

    assert find_log_calls(text) == [("a-b", ("x", "y")), ("c", ())]


def test_the_package_exports_its_public_names() -> None:
    for name in kohort.__all__:
        assert getattr(kohort, name) is not None
