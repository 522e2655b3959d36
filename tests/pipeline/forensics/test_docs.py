"""The page says what the tables and findings say."""

from kohort.pipeline.forensics.docs import forensics_markdown
from tests.tidy.repository import ROOT


def test_the_page_on_forensics_is_fresh() -> None:
    page = (ROOT / "docs" / "forensics.md").read_text("utf-8")

    assert page == forensics_markdown(), "python -m kohort.pipeline.forensics.docs writes it anew"
