"""The documents name existing make targets, commands, packages, functions and files."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from kohort.cli.app import COMMANDS
from tests.tidy.repository import PACKAGES, ROOT, find_texts, read

DOCUMENTS = {path: text for path, text in find_texts() if path.endswith(".md")}
PAGES = sorted(DOCUMENTS)

WALK_STEPS_MAX = 15


def make_targets(makefile: str) -> set[str]:
    """The targets of a Makefile that `make help` shows."""
    return set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))


def unknown_targets(text: str, targets: set[str]) -> list[str]:
    """Words after `make`, in code spans and at the start of code lines, that are not targets."""
    words = re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)
    return [word for word in words if word not in targets]


def undocumented_commands(commands: Iterable[str], text: str) -> list[str]:
    """Commands that no document shows as `kohort command`."""
    return [
        command for command in commands if not re.search(rf"kohort {re.escape(command)}\b", text)
    ]


def numbering_gaps(names: Iterable[str]) -> list[int]:
    """Numbers between 1 and the last that are missing or used twice."""
    numbers = [int(name.partition("-")[0]) for name in names]
    return [
        number for number in range(1, max(numbers, default=0) + 1) if numbers.count(number) != 1
    ]


def file_map_offences(text: str, packages: dict[str, str]) -> list[str]:
    """Packages for which the file map and the directories disagree."""
    rows = re.findall(r"^    (\w+)/ +(planned:)?", text, re.MULTILINE)
    mapped = {package: "planned" if planned else "built" for package, planned in rows}
    return [
        f"{name}: {mapped.get(name, 'absent')} in the map, {packages.get(name, 'absent')} in src"
        for name in sorted(mapped.keys() | packages.keys())
        if mapped.get(name) != packages.get(name)
    ]


def relative_links(text: str) -> list[str]:
    """The relative links of a page, without the part after the #."""
    return [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES)
def test_every_make_command_is_a_target(page: str) -> None:
    assert unknown_targets(DOCUMENTS[page], make_targets(read("Makefile"))) == []


def test_every_make_target_has_a_help_text() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)

    assert phony
    assert set(phony[1].split()) == make_targets(read("Makefile"))


def test_every_command_is_documented() -> None:
    text = "\n".join(DOCUMENTS[page] for page in PAGES if page.startswith(("README", "docs/")))

    assert undocumented_commands(COMMANDS, text) == []


def test_decisions_are_numbered_without_gaps() -> None:
    names = [path.name for path in (ROOT / "docs" / "decisions").iterdir()]

    assert names
    assert numbering_gaps(names) == []


def test_the_file_map_agrees_with_the_folders() -> None:
    packages = {
        path.parent.name: "built" if len(list(path.parent.rglob("*.py"))) > 1 else "planned"
        for path in PACKAGES.glob("*/__init__.py")
    }

    assert file_map_offences(read("ARCHITECTURE.md"), packages) == []


def walk_offences(text: str, root: Path) -> list[str]:
    """Steps of the walks that name a file or a function that does not exist, and long walks."""
    offences = []
    for title, body in re.findall(r"^### (.+?)\n(.+?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL):
        steps = re.findall(r"^\d+\. (.*)$", body, re.MULTILINE)
        if len(steps) > WALK_STEPS_MAX:
            offences.append(f"{title}: {len(steps)} steps")
        for step in steps:
            named = re.match(r"`([\w/]+\.py)` `([\w.]+)`", step)
            if named is None:
                offences.append(f"{title}: no file and function: {step}")
            elif named[2] not in defined_names(root / named[1]):
                offences.append(f"{title}: no {named[2]} in {named[1]}")
    return offences


def defined_names(path: Path) -> set[str]:
    """Functions, classes and methods that a file defines."""
    if not path.exists():
        return set()
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            names |= {f"{node.name}.{each.name}" for each in methods}
    return names


def test_the_walks_name_functions_that_exist() -> None:
    walks = (
        read("ARCHITECTURE.md")
        .partition("\n## Four requests, step by step\n")[2]
        .partition("\n## ")[0]
    )

    assert len(re.findall("^### ", walks, re.MULTILINE)) == 4
    assert walk_offences(walks, PACKAGES) == []


def test_a_walk_through_missing_code_is_caught(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class A:\n    def b(self): ...\ndef c(): ...\n", "utf-8")
    good = "### Good\n\n1. `a.py` `A.b` does.\n2. `a.py` `c` too.\n"
    bad = "### Bad\n\n1. `a.py` `A.c` does not.\n2. `d.py` `e` neither.\n3. Nothing.\n"
    long = "### Long\n\n" + "1. `a.py` `c` again.\n" * 16

    assert walk_offences(good + bad + long, tmp_path) == [
        "Bad: no A.c in a.py",
        "Bad: no e in d.py",
        "Bad: no file and function: Nothing.",
        "Long: 16 steps",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_has_a_target(page: str) -> None:
    folder = (ROOT / page).parent

    dead = [link for link in relative_links(DOCUMENTS[page]) if not (folder / link).exists()]

    assert dead == []


def test_the_changelog_has_an_unreleased_section() -> None:
    assert re.search(r"^## Unreleased$", read("CHANGELOG.md"), re.MULTILINE)


def test_unknown_make_targets_are_caught() -> None:
    text = "Say `make tea`, or\nmake coffee\nbut make sure to `make test`."

    assert unknown_targets(text, {"test"}) == ["tea", "coffee"]


def test_a_target_without_help_is_not_counted() -> None:
    assert make_targets("a: b ## Do it.\nb:\n\ttrue\n") == {"a"}


def test_undocumented_commands_are_caught() -> None:
    assert undocumented_commands(["serve", "top"], "kohort serve and kohort topics") == ["top"]


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
