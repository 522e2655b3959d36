"""The documentation page is up to date."""

from tests.tidy.repository import ROOT
from tools.docgen.forensics_page import forensics_markdown


def test_the_forensics_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "forensics.md").read_text("utf-8")

    assert page == forensics_markdown(), (
        "run python -m tools.docgen.forensics_page > docs/reference/forensics.md"
    )
