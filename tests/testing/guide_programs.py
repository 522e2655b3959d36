"""The programs in the guides to testing, as a reader would copy them."""

import re
from pathlib import Path

from tests.tidy.repository import read

GUIDE = read("docs/guide/testing.md")
LANGUAGES = read("docs/guide/testing-languages.md")

_PAGES = (read("README.md"), GUIDE, read("docs/guide/clock.md"))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def _is_test(program: str) -> bool:
    return "\ndef test_" in f"\n{program}"


_PROGRAMS = [each for page in _PAGES for each in blocks(page, "python")]
_SERVICE = next(each for each in _PROGRAMS if each.startswith("# billing.py"))

TESTS = [each for each in _PROGRAMS if _is_test(each)]
SCRIPTS = [each for each in _PROGRAMS if not _is_test(each) and each != _SERVICE]


def write_tests(directory: Path) -> None:
    """Write the tests and the service that they test; each has one test function."""
    (directory / "billing.py").write_text(_SERVICE, "utf-8")
    for number, program in enumerate(TESTS):
        (directory / f"test_{number}.py").write_text(program, "utf-8")
