"""Every known difference from Kafka is on the page that users read."""

from tests.tidy.deviations import find_deviations, page
from tests.tidy.repository import read


def test_the_page_lists_every_deviation_in_the_code() -> None:
    assert read("docs/not-supported.md") == page(), (
        "stale: run `python -m tests.tidy.deviations > docs/not-supported.md`"
    )


def test_a_deviation_may_run_over_several_lines() -> None:
    guilty = "x = 1\n    # DEVIATION: Kafka does this;\n    # we do that.\n    y = 2\n"

    assert find_deviations(guilty) == ["Kafka does this; we do that."]


def test_a_deviation_may_begin_within_a_line() -> None:
    assert find_deviations("# It is so. DEVIATION: Kafka does that.\n") == ["Kafka does that."]


def test_ordinary_comments_are_no_deviations() -> None:
    assert find_deviations("# an explanation\nx = 1  # another\n") == []
