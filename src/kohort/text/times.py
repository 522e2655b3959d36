"""Points in time as text, always in UTC. Times outside the calendar are cut to its ends."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS_MIN: Final = -62_135_596_800_000
_MS_MAX: Final = 253_402_300_799_999


def date_of(ms: int) -> datetime:
    """Any number of milliseconds since 1970 that a Kafka record can hold."""
    return _EPOCH + timedelta(milliseconds=min(max(ms, _MS_MIN), _MS_MAX))


def timestamp(ms: int) -> str:
    """2026-11-16T09:00:00.000Z, as in ISO 8601 and in HTML's time element."""
    return date_of(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def period(since_ms: int, until_ms: int) -> str:
    """2026-01-05 08:00 to 09:00 UTC; the second date only if it differs."""
    since, until = date_of(since_ms), date_of(until_ms)
    is_same_day = since.date() == until.date()
    return f"{since:%Y-%m-%d %H:%M} to {until:{'%H:%M' if is_same_day else '%Y-%m-%d %H:%M'}} UTC"
