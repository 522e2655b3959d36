"""The consumer's page says what its tables say, and the tables leave nothing out."""

import ast
import inspect
import re
import subprocess
import sys

import kohort
from kohort.client import errors
from kohort.client.diary import WORDS
from kohort.client.docs import consumer_markdown
from kohort.client.options_table import OPTIONS
from tests.tidy.repository import ROOMS, read

Call = tuple[str, tuple[str, ...]]


def find_diary_calls(text: str) -> list[Call]:
    """What a file says to the log: words with their facts."""
    return [
        (ast.literal_eval(node.args[0]), tuple(str(keyword.arg) for keyword in node.keywords))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("diary.note", "diary.warn")
    ]


def test_the_page_is_what_the_tables_say() -> None:
    is_fresh = read("docs/consumer.md") == consumer_markdown()

    refresh = "python -m kohort.client.docs > docs/consumer.md"
    assert is_fresh, f"docs/consumer.md is out of date; refresh it with: {refresh}"


def test_the_module_prints_the_page_when_it_is_run() -> None:
    command = [sys.executable, "-m", "kohort.client.docs"]

    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    assert printed == consumer_markdown()


def test_every_option_error_and_word_is_on_the_page() -> None:
    page = consumer_markdown()

    for name in OPTIONS:
        assert f"\n| `{name}` | " in page
    for name, found in vars(errors).items():
        if isinstance(found, type) and issubclass(found, Exception):
            assert f"\n| `{name}` | " in page
            assert inspect.getdoc(found), f"{name} does not say what it means"
    for word in WORDS:
        assert f"\n| `{word}` | " in page


def test_every_method_is_on_the_page() -> None:
    page = consumer_markdown()
    methods = [name for name in vars(kohort.Consumer) if not name.startswith("_")]

    assert methods
    assert [name for name in methods if not re.search(rf"\b{name}\b", page)] == []


def test_the_log_says_only_what_is_explained() -> None:
    said = {
        call
        for path in sorted((ROOMS / "client").rglob("*.py"))
        for call in find_diary_calls(path.read_text(encoding="utf-8"))
    }

    assert said == {(word, facts) for word, (facts, _) in WORDS.items()}


def test_what_is_said_to_the_log_is_seen() -> None:
    text = 'diary.note("a-b", x=1, y=2)\nif z:\n    diary.warn("c")\nother.note("d")'

    assert find_diary_calls(text) == [("a-b", ("x", "y")), ("c", ())]


def test_the_package_offers_what_it_names() -> None:
    for name in kohort.__all__:
        assert getattr(kohort, name) is not None
