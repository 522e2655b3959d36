"""docs/reference/compatibility.md shows the expected results of the tests."""

import subprocess
import sys
from pathlib import Path

from tests.contract.brokers import APACHE, BROKERS
from tests.contract.expected_results import GREEN, Claim
from tests.contract.libraries import every_library
from tests.contract.matrix import Cell, render, sentence_of
from tests.tidy.repository import ROOT, read

PAGE = "docs/reference/compatibility.md"


def test_the_page_shows_the_expected_results(tmp_path: Path) -> None:
    claimed = tmp_path / "claimed.md"
    arguments = ["tests/contract/behaviours", "--collect-only", "-q", "-p", "no:cacheprovider"]

    subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "--matrix", claimed],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )

    assert read(PAGE) == claimed.read_text("utf-8"), (
        f"{PAGE} is stale; it says how to regenerate it"
    )


def test_a_name_becomes_a_sentence() -> None:
    assert sentence_of("test_a_group_s_offsets_are_listed") == "A group's offsets are listed"


def test_an_unsupported_feature_has_a_reason() -> None:
    library = every_library()[1]
    not_supported = Claim(colour="red", reason="It cannot.")
    cells = {
        Cell(theme="Theme", behaviour="It works", column=library.name, broker=broker): (
            GREEN if broker == APACHE else not_supported
        )
        for broker in BROKERS
    }

    page = render(cells, [library])

    assert "| It works | ✗✗● [1](#reasons) |" in page
    assert "1. **Kohort**: It cannot." in page
    assert "1 behaviours" in page
