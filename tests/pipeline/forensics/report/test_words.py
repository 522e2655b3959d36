"""Numbers and times as people say them."""

import pytest

from kohort.pipeline.forensics.report.words import (
    count,
    duration,
    listed,
    machine_moment,
    percent,
    stretch,
)
from tests.pipeline.forensics.report.samples import DAWN_MS, HOUR_MS


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (4240, "4.2 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min"),
        (200_000, "3 min 20 s"),
        (3_599_499, "59 min 59 s"),
        (3_599_600, "1 h"),
        (86_369_999, "23 h 59 min"),
        (86_370_000, "1 d"),
        (187_200_000, "2 d 4 h"),
        (86_400_000 * 1500, "1,500 d"),
    ],
)
def test_a_duration_has_two_units_at_most(ms: int, words: str) -> None:
    assert duration(ms) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0 %"), (0.0004, "under 0.1 %"), (0.0123, "1.2 %"), (0.5, "50 %"), (1, "100 %")],
)
def test_a_percentage_has_digits_that_mean_something(share: float, words: str) -> None:
    assert percent(share) == words


def test_counts_and_lists_read_as_sentences_do() -> None:
    assert (count(1, "rebalance"), count(1204, "rebalance")) == ("1 rebalance", "1,204 rebalances")
    assert (listed(["a"]), listed(["a", "b", "c"])) == ("a", "a, b and c")


def test_a_day_is_told_once_where_it_is_the_same() -> None:
    assert stretch(DAWN_MS, DAWN_MS + HOUR_MS) == "2026-01-05 08:00 to 09:00 UTC"
    assert stretch(DAWN_MS, DAWN_MS + 24 * HOUR_MS) == "2026-01-05 08:00 to 2026-01-06 08:00 UTC"


def test_times_that_no_calendar_has_are_no_error() -> None:
    assert machine_moment(2**62).startswith("9999-12-31")
    assert machine_moment(-(2**62)).startswith("0001-01-01")
