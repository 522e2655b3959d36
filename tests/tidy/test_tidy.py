"""Our files keep our rules, and every rule can be broken."""

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
    guilty: tuple[str, ...]
    innocent: str


LINE = "    pass\n"
HOME = "/" + "home" + "/me"

CASES = (
    Case(
        find=rules.long_files,
        applies_to=is_source,
        guilty=("\n" * 501,),
        innocent="\n" * 500,
    ),
    Case(
        find=rules.long_functions,
        applies_to=is_source,
        guilty=("def f():\n" + LINE * 60, "async def f():\n" + LINE * 60),
        innocent="def f():\n" + LINE * 59,
    ),
    Case(
        find=rules.long_lines,
        applies_to=is_code,
        guilty=("x" * 101,),
        innocent="x" * 100 + "\n# https://" + "x" * 100,
    ),
    Case(
        find=rules.leftovers,
        applies_to=is_any,
        guilty=("# TO" + "DO: later", "FIX" + "ME", "XX" + "X"),
        innocent="AUTODOC",
    ),
    Case(
        find=rules.prints,
        applies_to=is_source_below_cli,
        guilty=("print('here')",),
        innocent="sprint()\nconsole.print()\n'print(1)'",
    ),
    Case(
        find=rules.breakpoints,
        applies_to=is_python,
        guilty=("breakpoint()", "import pdb; pdb.set_trace()"),
        innocent="'breakpoint()'",
    ),
    Case(
        find=rules.sleeps,
        applies_to=is_test,
        guilty=("time.sleep(1)", "from time import sleep\nsleep(1)", "await asyncio.sleep(0.1)"),
        innocent="wait_until(is_stable)",
    ),
    Case(
        find=rules.unexplained_ignores,
        applies_to=is_python,
        guilty=(
            "f()  # type: ignore",
            "f()  # type: ignore[arg-type]",
            "f()  # type: ignore[arg-type]  # noqa: F401",
        ),
        innocent="f()  # type: ignore[arg-type]  # the stub is older than the library",
    ),
    Case(
        find=rules.swallowed_exceptions,
        applies_to=is_python,
        guilty=(
            "try: f()\nexcept: pass",
            "try: f()\nexcept Exception: g()",
            "try: f()\nexcept (ValueError, BaseException) as error: g()",
        ),
        innocent=(
            "try: f()\nexcept ValueError: pass\n"
            "try: f()\nexcept Exception as error: refuse(error)\n"
            "try: f()\nexcept BaseException:\n    undo()\n    raise\n"
        ),
    ),
    Case(
        find=rules.missing_docstrings,
        applies_to=is_source,
        guilty=("import os",),
        innocent='"""What it is for."""',
    ),
    Case(
        find=rules.empty_files,
        applies_to=is_any,
        guilty=("", "\n \n"),
        innocent="x",
    ),
    Case(
        find=rules.machine_paths,
        applies_to=is_any,
        guilty=(f"cd {HOME}", f"'{HOME}'"),
        innocent="docs/home/page and $JAVA_HOME/bin",
    ),
    Case(
        find=rules.registry_hosts,
        applies_to=is_any,
        guilty=("https://" + "pypi" + ".org/simple",),
        innocent="https://kafka.apache.org/protocol",
    ),
    Case(
        find=rules.short_test_names,
        applies_to=is_test,
        guilty=("def test_join(): ...", "def test_late_sync(): ..."),
        innocent="def test_late_sync_is_refused(): ...\ndef tested(): ...",
    ),
)

every_rule = pytest.mark.parametrize("case", CASES, ids=lambda case: case.find.__name__)


@every_rule
def test_our_files_keep_the_rule(case: Case) -> None:
    offences = [
        f"{path}:{line}: {complaint}"
        for path, text in find_texts()
        if case.applies_to(path)
        for line, complaint in case.find(text)
    ]

    assert not offences, "\n".join(offences)


@every_rule
def test_a_guilty_file_is_caught(case: Case) -> None:
    for text in case.guilty:
        assert list(case.find(text)), text


@every_rule
def test_an_innocent_file_is_let_go(case: Case) -> None:
    assert list(case.find(case.innocent)) == []


@every_rule
def test_every_rule_has_files_to_look_at(case: Case) -> None:
    assert any(case.applies_to(path) for path, _ in find_texts())
