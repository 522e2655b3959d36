"""What may be asked of a forensics run."""

from datetime import UTC, datetime, timedelta

import pytest

from kohort.pipeline.forensics.wish import (
    KAFKA_REFUSED,
    BadForensicsWish,
    ForensicsWish,
    check,
    read_since,
)
from kohort.pipeline.ingest.wish import BadWish, read_kafka

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90m", NOW - timedelta(minutes=90)),
        ("1.5 h", NOW - timedelta(minutes=90)),
        ("7d", NOW - timedelta(days=7)),
        ("2026-11-16T09:00", datetime(2026, 11, 16, 9, 0, tzinfo=UTC)),
        ("2026-11-16T09:00+02:00", datetime(2026, 11, 16, 7, 0, tzinfo=UTC)),
        ("2026-11-15", datetime(2026, 11, 15, tzinfo=UTC)),
    ],
)
def test_a_time_is_told_by_the_clock_or_by_how_long_ago(text: str, meant: datetime) -> None:
    assert read_since(text, NOW) == meant


@pytest.mark.parametrize("text", ["", "soon", "5 weeks", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadForensicsWish, match="is no time"):
        read_since(text, NOW)


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        (ForensicsWish(target="d"), "say where the history is"),
        (ForensicsWish(target="d", log="l", bootstrap_servers="h:1"), "say where the history is"),
        (ForensicsWish(target="d", bootstrap_servers="h:1", ends="f"), "--ends is for --from-log"),
        (ForensicsWish(target="d", log="l", is_continuous=True), "does not grow"),
    ],
)
def test_what_cannot_be_is_refused(wish: ForensicsWish, complaint: str) -> None:
    with pytest.raises(BadForensicsWish, match=complaint):
        check(wish)


@pytest.mark.parametrize(
    ("word", "reason"),
    [("group.id=mine", "--own-group"), ("auto.offset.reset=latest", "from its beginning")],
)
def test_options_of_the_consumer_that_are_not_free_are_refused(word: str, reason: str) -> None:
    with pytest.raises(BadWish, match=reason):
        read_kafka([word], KAFKA_REFUSED)
