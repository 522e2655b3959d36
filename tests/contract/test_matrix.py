"""docs/compatibility.md says what the tests claim to show."""

import subprocess
import sys
from pathlib import Path

from tests.contract.brokers import APACHE, BROKERS
from tests.contract.claims import GREEN, Claim
from tests.contract.libraries import every_library
from tests.contract.matrix import Cell, render, sentence_of
from tests.tidy.repository import ROOT, read

PAGE = "docs/compatibility.md"


def test_the_page_says_what_the_tests_claim(tmp_path: Path) -> None:
    claimed = tmp_path / "claimed.md"
    words = ["tests/contract/behaviours", "--collect-only", "-q", "-p", "no:cacheprovider"]

    subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--matrix", claimed],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )

    assert read(PAGE) == claimed.read_text("utf-8"), f"write {PAGE} anew: it says how"


def test_a_name_becomes_a_sentence() -> None:
    assert sentence_of("test_a_group_s_offsets_are_told") == "A group's offsets are told"


def test_what_is_missing_has_its_reason() -> None:
    library = every_library()[1]
    lacking = Claim(colour="red", reason="It cannot.")
    cells = {
        Cell(theme="Theme", behaviour="It works", column=library.name, broker=broker): (
            GREEN if broker == APACHE else lacking
        )
        for broker in BROKERS
    }

    page = render(cells, [library])

    assert "| It works | ✗✗● [1](#reasons) |" in page
    assert "1. **Kohort**: It cannot." in page
    assert "1 behaviours" in page
