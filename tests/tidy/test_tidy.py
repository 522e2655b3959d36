"""The files follow the rules, and every rule can be broken."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.tidy import rules
from tests.tidy.repository import find_texts


def is_python(path: str) -> bool:
    return path.endswith(".py")


def is_source(path: str) -> bool:
    return path.startswith("src/") and is_python(path)


def is_source_below_cli(path: str) -> bool:
    return is_source(path) and not path.startswith("src/kohort/cli/")


def is_test(path: str) -> bool:
    return path.startswith("tests/") and is_python(path)


def is_code(path: str) -> bool:
    return is_python(path) or path.startswith(("scripts/", ".ci/")) or path == "Makefile"


def is_any(path: str) -> bool:
    return not path.endswith("/py.typed")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Case:
    find: Callable[[str], rules.Offences]
    applies_to: Callable[[str], bool]
    offending: tuple[str, ...]
    correct: str


LINE = "    pass\n"
HOME = "/" + "home" + "/me"

CASES = (
    Case(
        find=rules.long_files,
        applies_to=is_source,
        offending=("\n" * 501,),
        correct="\n" * 500,
    ),
    Case(
        find=rules.long_functions,
        applies_to=is_source,
        offending=("def f():\n" + LINE * 60, "async def f():\n" + LINE * 60),
        correct="def f():\n" + LINE * 59,
    ),
    Case(
        find=rules.long_lines,
        applies_to=is_code,
        offending=("x" * 101,),
        correct="x" * 100 + "\n# https://" + "x" * 100,
    ),
    Case(
        find=rules.leftovers,
        applies_to=is_any,
        offending=("# TO" + "DO: later", "FIX" + "ME", "XX" + "X"),
        correct="AUTODOC",
    ),
    Case(
        find=rules.prints,
        applies_to=is_source_below_cli,
        offending=("print('here')",),
        correct="sprint()\nconsole.print()\n'print(1)'",
    ),
    Case(
        find=rules.breakpoints,
        applies_to=is_python,
        offending=("breakpoint()", "import pdb; pdb.set_trace()"),
        correct="'breakpoint()'",
    ),
    Case(
        find=rules.sleeps,
        applies_to=is_test,
        offending=("time.sleep(1)", "from time import sleep\nsleep(1)", "await asyncio.sleep(0.1)"),
        correct="wait_until(is_stable)",
    ),
    Case(
        find=rules.unexplained_ignores,
        applies_to=is_python,
        offending=(
            "f()  # type: ignore",
            "f()  # type: ignore[arg-type]",
            "f()  # type: ignore[arg-type]  # noqa: F401",
        ),
        correct="f()  # type: ignore[arg-type]  # the stub is older than the library",
    ),
    Case(
        find=rules.swallowed_exceptions,
        applies_to=is_python,
        offending=(
            "try: f()\nexcept: pass",
            "try: f()\nexcept Exception: g()",
            "try: f()\nexcept (ValueError, BaseException) as error: g()",
        ),
        correct=(
            "try: f()\nexcept ValueError: pass\n"
            "try: f()\nexcept Exception as error: refuse(error)\n"
            "try: f()\nexcept BaseException:\n    undo()\n    raise\n"
        ),
    ),
    Case(
        find=rules.missing_docstrings,
        applies_to=is_source,
        offending=("import os",),
        correct='"""What it is for."""',
    ),
    Case(
        find=rules.empty_files,
        applies_to=is_any,
        offending=("", "\n \n"),
        correct="x",
    ),
    Case(
        find=rules.machine_paths,
        applies_to=is_any,
        offending=(f"cd {HOME}", f"'{HOME}'"),
        correct="docs/home/page and $JAVA_HOME/bin",
    ),
    Case(
        find=rules.registry_hosts,
        applies_to=is_any,
        offending=("https://" + "pypi" + ".org/simple",),
        correct="https://kafka.apache.org/protocol",
    ),
    Case(
        find=rules.short_test_names,
        applies_to=is_test,
        offending=("def test_join(): ...", "def test_late_sync(): ..."),
        correct="def test_late_sync_is_refused(): ...\ndef tested(): ...",
    ),
)

every_rule = pytest.mark.parametrize("case", CASES, ids=lambda case: case.find.__name__)


@every_rule
def test_files_follow_the_rule(case: Case) -> None:
    offences = [
        f"{path}:{line}: {complaint}"
        for path, text in find_texts()
        if case.applies_to(path)
        for line, complaint in case.find(text)
    ]

    assert not offences, "\n".join(offences)


@every_rule
def test_an_offence_is_found(case: Case) -> None:
    for text in case.offending:
        assert list(case.find(text)), text


@every_rule
def test_a_correct_file_has_no_offences(case: Case) -> None:
    assert list(case.find(case.correct)) == []


@every_rule
def test_every_rule_applies_to_some_files(case: Case) -> None:
    assert any(case.applies_to(path) for path, _ in find_texts())
