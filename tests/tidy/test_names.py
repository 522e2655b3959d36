"""Modules, classes and texts follow the naming rules, and every rule can be broken."""

import pytest

from tests.tidy import names
from tests.tidy.repository import find_texts

WORD_LISTS = ("tests/tidy/names.py", "tests/tidy/test_names.py")
"""They contain the banned words themselves."""

TEXT_ENDINGS = (".css", ".html", ".java", ".js", ".md", ".py", ".sh", ".toml", ".trace")

TEXTS = dict(find_texts())
MODULES = {path: text for path, text in TEXTS.items() if path.endswith(".py")}


def has_words(path: str) -> bool:
    is_text = path.endswith(TEXT_ENDINGS) or path.startswith(("scripts/", ".ci/"))
    return path not in WORD_LISTS and (is_text or path == "Makefile")


def report(offences: list[str]) -> str:
    return f"{len(offences)} offences:\n" + "\n".join(offences)


def test_modules_are_named_after_things() -> None:
    paths = [path for path in MODULES if path.startswith(("src/", "tests/", "tools/"))]

    offences = list(names.gerund_modules(paths))

    assert not offences, report(offences)


def test_at_most_two_modules_share_a_name() -> None:
    paths = [path for path in MODULES if path.startswith("src/kohort/")]

    offences = list(names.repeated_basenames(paths))

    assert not offences, report(offences)


def test_class_names_are_unique() -> None:
    texts = {
        path: text for path, text in MODULES.items() if path.startswith(("src/kohort/", "tools/"))
    }

    offences = list(names.repeated_classes(texts))

    assert not offences, report(offences)


def test_texts_have_no_banned_words() -> None:
    offences = [
        f"{path}:{line - 1}: {complaint}"
        for path, text in TEXTS.items()
        if has_words(path)
        for line, complaint in names.banned_words(f"{path}\n{text}")
    ]

    assert not offences, report(offences)


@pytest.mark.parametrize("path", ["src/kohort/log/reading.py", "tests/wire/odd_reading.py"])
def test_a_gerund_is_an_offence(path: str) -> None:
    assert list(names.gerund_modules([path]))


@pytest.mark.parametrize(
    "path", ["tests/log/test_reading.py", "src/kohort/wire/url_encoding.py", "tools/thing/plan.py"]
)
def test_nouns_and_tests_are_no_gerunds(path: str) -> None:
    assert list(names.gerund_modules([path])) == []


def test_a_third_module_with_the_same_name_is_an_offence() -> None:
    paths = [f"src/kohort/{package}/plan.py" for package in ("admin", "client", "sim")]

    assert list(names.repeated_basenames(paths[:2])) == []
    assert list(names.repeated_basenames(paths)) == [f"plan.py: {', '.join(paths)}"]


def test_commands_may_have_the_names_of_modules() -> None:
    paths = [f"src/kohort/{package}/topics.py" for package in ("admin", "node", "cli", "cli/x")]

    assert list(names.repeated_basenames(paths)) == []


def test_a_class_name_in_two_modules_is_an_offence() -> None:
    texts = {"src/a.py": "class Plan: ...", "src/b.py": "class Plan: ...\nclass Other: ..."}

    assert list(names.repeated_classes(texts)) == ["Plan: src/a.py, src/b.py"]


def test_messages_and_nested_classes_may_repeat_a_name() -> None:
    texts = {
        "src/a.py": "class Coordinator: ...",
        "src/b.py": "class B:\n    class Coordinator: ...",
        "src/kohort/wire/api/k10_find_coordinator.py": "class Coordinator: ...",
    }

    assert list(names.repeated_classes(texts)) == []


@pytest.mark.parametrize(
    "text",
    ["Somebody waits.", "def told_to_nobody(): ...", "# not so\n# many records", "x = Wish()"],
)
def test_a_banned_word_is_an_offence(text: str) -> None:
    assert list(names.banned_words(text))


@pytest.mark.parametrize("text", ["we recommend it", "turn, room, note", "many", "newest"])
def test_ordinary_words_are_allowed(text: str) -> None:
    assert list(names.banned_words(text)) == []
