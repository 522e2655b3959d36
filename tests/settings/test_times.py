"""Times and durations in ISO 8601 and in short form."""

import pytest

from kohort.settings.readers import BadValue
from kohort.settings.times import read_duration, read_since, read_time
from kohort.text.times import timestamp
from kohort.types import Millis

HOUR = 3_600_000
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("90m", 90 * 60_000),
        ("6h", 6 * HOUR),
        ("7d", 7 * DAY),
        ("1.5h", HOUR + HOUR // 2),
        ("250ms", 250),
        ("P1D", DAY),
        ("PT15H30M", 15 * HOUR + 30 * 60_000),
        ("P1DT2H3M4.5S", DAY + 2 * HOUR + 3 * 60_000 + 4_500),
        ("pt10s", 10_000),
        ("-PT1H", -HOUR),
        ("PT-1H", -HOUR),
    ],
)
def test_durations_are_read_in_two_ways(text: str, millis: int) -> None:
    assert read_duration(text) == millis


def test_a_bare_number_needs_a_unit_to_be_a_duration() -> None:
    assert read_duration("2", "s") == 2_000
    assert read_duration("1.5m", "s") == 90_000


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1", "h", "P1H", "1y", "soon"])
def test_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(BadValue, match="duration"):
        read_duration(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-11-16T09:00", "2026-11-16T09:00:00.000Z"),
        ("2026-11-16T09:00:01.250", "2026-11-16T09:00:01.250Z"),
        ("2026-11-16T09:00:00.000+02:00", "2026-11-16T07:00:00.000Z"),
        ("2026-11-16T09:00:00Z", "2026-11-16T09:00:00.000Z"),
        ("2026-11-16", "2026-11-16T00:00:00.000Z"),
    ],
)
def test_time_without_a_zone_is_utc(text: str, shown: str) -> None:
    assert timestamp(read_time(text)) == shown


def test_since_is_a_time_or_a_duration_ago() -> None:
    now = Millis(10 * DAY)

    assert read_since("1d", now) == 9 * DAY
    assert read_since("1970-01-02T00:00", now) == DAY
    assert read_since("100d", now) == 0
    with pytest.raises(BadValue, match="how long ago"):
        read_since("yesterday", now)
