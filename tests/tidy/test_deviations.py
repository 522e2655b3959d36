"""docs/reference/not-supported.md lists every DEVIATION comment."""

from tests.tidy.deviations import find_deviations, page
from tests.tidy.repository import read


def test_the_page_lists_every_deviation_in_the_code() -> None:
    assert read("docs/reference/not-supported.md") == page(), (
        "stale: run `python -m tests.tidy.deviations > docs/reference/not-supported.md`"
    )


def test_a_deviation_can_have_several_lines() -> None:
    text = "x = 1\n    # DEVIATION: Kafka does this;\n    # we do that.\n    y = 2\n"

    assert find_deviations(text) == ["Kafka does this; we do that."]


def test_a_deviation_can_start_within_a_line() -> None:
    assert find_deviations("# It is so. DEVIATION: Kafka does that.\n") == ["Kafka does that."]


def test_other_comments_are_not_listed() -> None:
    assert find_deviations("# an explanation\nx = 1  # another\n") == []
