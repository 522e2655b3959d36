"""Numbers, durations, lists and times as text."""

import pytest

from kohort.text.numbers import (
    count,
    duration,
    joined,
    number_ranges,
    percent,
    ranges_by_topic,
    size,
)
from kohort.text.times import period, timestamp
from kohort.types import Partition, Topic, TopicPartition

HOUR_MS = 3_600_000
DAWN_MS = 1_767_600_000_000


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 ms"),
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


def test_counts_and_lists_read_like_sentences() -> None:
    assert (count(1, "rebalance"), count(1204, "rebalance")) == ("1 rebalance", "1,204 rebalances")
    assert (joined(["a"]), joined(["a", "b", "c"])) == ("a", "a, b and c")


def test_the_date_is_shown_once_if_it_is_the_same() -> None:
    assert period(DAWN_MS, DAWN_MS + HOUR_MS) == "2026-01-05 08:00 to 09:00 UTC"
    assert period(DAWN_MS, DAWN_MS + 24 * HOUR_MS) == "2026-01-05 08:00 to 2026-01-06 08:00 UTC"


def test_times_outside_the_calendar_are_cut_to_its_ends() -> None:
    assert timestamp(2**62).startswith("9999-12-31")
    assert timestamp(-(2**62)).startswith("0001-01-01")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2 * 10**15, "2,000.0 TB")]
)
def test_a_size_has_a_decimal_unit(number: int, text: str) -> None:
    assert size(number) == text


def test_consecutive_numbers_are_shown_as_a_range() -> None:
    assert number_ranges([7, 0, 1, 3, 2]) == "0-3, 7"
    assert number_ranges([4, 5], ",") == "4-5"
    assert number_ranges([]) == ""


def test_partitions_are_shown_as_ranges_by_topic() -> None:
    held = [TopicPartition(Topic(name), Partition(number)) for name, number in (("b", 1), ("a", 0))]

    assert ranges_by_topic(held) == {"b": "1", "a": "0"}
