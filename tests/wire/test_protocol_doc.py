"""The protocol page is up to date, and the docstring of every API has the required parts."""

import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise

import pytest

from kohort.wire import api
from kohort.wire.api import Api, all_apis
from tests.tidy.repository import read
from tools.docgen.protocol_page import protocol_markdown

REFRESH = "python -m tools.docgen.protocol_page > docs/reference/protocol.md"

every_api = pytest.mark.parametrize("each", all_apis(), ids=lambda each: each.name)


def docstring_of(each: Api) -> str:
    (file,) = (file for file in api.FILES if file.startswith(f"k{each.key:02}_"))
    return import_module(f"kohort.wire.api.{file}").__doc__ or ""


def notes_of(each: Api) -> list[tuple[range, str]]:
    """The version notes: the versions and the text of each note."""
    lines = docstring_of(each).partition("\nVersion notes:\n")[2]
    notes = re.findall(r"^ (\d+)(?:-(\d+))? +(\S.*(?:\n {3,}.*)*)$", lines, re.MULTILINE)
    return [(range(int(first), int(last or first) + 1), text) for first, last, text in notes]


def test_page_is_up_to_date() -> None:
    is_fresh = read("docs/reference/protocol.md") == protocol_markdown()

    assert is_fresh, f"docs/reference/protocol.md is out of date; refresh it with: {REFRESH}"


def test_module_prints_the_page() -> None:
    command = [sys.executable, "-m", "tools.docgen.protocol_page"]

    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    assert printed == protocol_markdown()


def test_page_has_a_row_and_a_section_for_every_api() -> None:
    page = protocol_markdown()

    assert [int(key) for key in re.findall(r"^\| (\d+) \| \[\w+\]", page, re.MULTILINE)] == list(
        api.KEYS
    )
    assert [int(key) for key in re.findall(r"^### (\d+) \w+$", page, re.MULTILINE)] == list(
        api.KEYS
    )


@every_api
def test_docstring_starts_with_name_and_key(each: Api) -> None:
    title = docstring_of(each).partition("\n")[0]

    assert title.startswith(f"{each.name}, API key {each.key}: ")
    assert title.endswith(".")


@every_api
def test_version_notes_are_in_order_and_within_the_versions(each: Api) -> None:
    spans = [span for span, _ in notes_of(each)]

    assert spans
    assert all(before[-1] < after[0] for before, after in pairwise(spans))
    assert spans[-1][-1] <= each.versions[-1]


@every_api
def test_every_version_after_the_first_has_a_note(each: Api) -> None:
    noted = {version for span, _ in notes_of(each) for version in span}

    assert [version for version in each.versions[1:] if version not in noted] == []


@every_api
def test_versions_below_the_first_are_noted_as_removed(each: Api) -> None:
    removed = [span for span, text in notes_of(each) if text.startswith("removed in")]

    assert removed == ([range(each.versions[0])] if each.versions[0] else [])


@every_api
def test_first_flexible_version_is_noted(each: Api) -> None:
    noted = [span[0] for span, text in notes_of(each) if text.startswith("flexible")]
    only = [span[0] for span, text in notes_of(each) if "; flexible" in text]

    assert noted + only == ([] if each.flexible_since is None else [each.flexible_since])
