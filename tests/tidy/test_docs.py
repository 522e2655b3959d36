"""The documents say what is true: words that exist, verbs that are all there, links that lead."""

import re
from collections.abc import Iterable

import pytest

from kohort.cli.app import app
from tests.tidy.repository import ROOMS, ROOT, find_texts, read

DOCUMENTS = {path: text for path, text in find_texts() if path.endswith(".md")}
PAGES = sorted(DOCUMENTS)


def make_targets(makefile: str) -> set[str]:
    """The targets of a Makefile that `make help` shows."""
    return set(re.findall(r"^([a-z]+):.*## \S", makefile, re.MULTILINE))


def unknown_targets(text: str, targets: set[str]) -> list[str]:
    """The words after `make`, in code spans and at the start of code lines, that are no targets."""
    words = re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)
    return [word for word in words if word not in targets]


def undocumented_verbs(verbs: Iterable[str], text: str) -> list[str]:
    """The verbs that no document shows as `kohort verb`."""
    return [verb for verb in verbs if not re.search(rf"kohort {re.escape(verb)}\b", text)]


def numbering_gaps(names: Iterable[str]) -> list[int]:
    """The numbers between 1 and the last that are missing or used twice."""
    numbers = [int(name.partition("-")[0]) for name in names]
    return [
        number for number in range(1, max(numbers, default=0) + 1) if numbers.count(number) != 1
    ]


def file_map_offences(text: str, rooms: dict[str, str]) -> list[str]:
    """Where the file map and the folders disagree about a room, or about whether it is planned."""
    rows = re.findall(r"^    (\w+)/ +(planned:)?", text, re.MULTILINE)
    mapped = {room: "planned" if planned else "built" for room, planned in rows}
    return [
        f"{room}: {mapped.get(room, 'absent')} in the map, {rooms.get(room, 'absent')} in src"
        for room in sorted(mapped.keys() | rooms.keys())
        if mapped.get(room) != rooms.get(room)
    ]


def relative_links(text: str) -> list[str]:
    """What the links of a page point to, addresses aside, without the part after the #."""
    return [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES)
def test_every_make_word_is_a_target(page: str) -> None:
    assert unknown_targets(DOCUMENTS[page], make_targets(read("Makefile"))) == []


def test_every_make_target_explains_itself() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)

    assert phony
    assert set(phony[1].split()) == make_targets(read("Makefile"))


def test_every_verb_is_documented() -> None:
    verbs = [command.name or "" for command in app.registered_commands]
    text = "\n".join(DOCUMENTS[page] for page in PAGES if page.startswith(("README", "docs/")))

    assert verbs
    assert undocumented_verbs(verbs, text) == []


def test_decisions_are_numbered_without_gaps() -> None:
    names = [path.name for path in (ROOT / "docs" / "decisions").iterdir()]

    assert names
    assert numbering_gaps(names) == []


def test_the_file_map_agrees_with_the_folders() -> None:
    rooms = {
        path.parent.name: "built" if len(list(path.parent.rglob("*.py"))) > 1 else "planned"
        for path in ROOMS.glob("*/__init__.py")
    }

    assert file_map_offences(read("ARCHITECTURE.md"), rooms) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    folder = (ROOT / page).parent

    dead = [link for link in relative_links(DOCUMENTS[page]) if not (folder / link).exists()]

    assert dead == []


def test_the_changelog_has_a_place_for_what_comes() -> None:
    assert re.search(r"^## Unreleased$", read("CHANGELOG.md"), re.MULTILINE)


def test_unknown_make_words_are_caught() -> None:
    text = "Say `make tea`, or\nmake coffee\nbut make sure to `make test`."

    assert unknown_targets(text, {"test"}) == ["tea", "coffee"]


def test_a_target_without_help_is_not_counted() -> None:
    assert make_targets("a: b ## Do it.\nb:\n\ttrue\n") == {"a"}


def test_undocumented_verbs_are_caught() -> None:
    assert undocumented_verbs(["serve", "top"], "kohort serve and kohort topics") == ["top"]


def test_gaps_and_doubles_in_numbering_are_caught() -> None:
    assert numbering_gaps(["0001-a.md", "0003-b.md", "0003-c.md"]) == [2, 3]


def test_a_wrong_file_map_is_caught() -> None:
    text = "    wire/   bytes\n    log/    disk\n    sim/    planned: the world\n"

    offences = file_map_offences(text, {"wire": "built", "log": "planned", "node": "built"})

    assert offences == [
        "log: built in the map, planned in src",
        "node: absent in the map, built in src",
        "sim: planned in the map, absent in src",
    ]


def test_relative_links_are_seen() -> None:
    text = "[a](docs/a.md#part) [b](b.md) [c](https://example.com/c) [d](#here)"

    assert relative_links(text) == ["docs/a.md", "b.md"]
