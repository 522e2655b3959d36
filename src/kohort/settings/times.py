"""Points in time and durations as users write them: ISO 8601, or short as 90m, 6h, 7d. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

from kohort.settings.readers import BadValue
from kohort.types import Millis

_SHORT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)", re.IGNORECASE)
_UNITS_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_ISO: Final = re.compile(
    r"([-+]?)P(?=.)(?:([-+]?\d+)D)?"
    r"(?:T(?=.)(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:[.,]\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


def read_time(text: str) -> Millis:
    """Milliseconds since 1970 of a time in ISO 8601; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadValue(
            f"{text!r} is not a point in time; write it as 2026-11-16T09:00 (ISO 8601)"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return Millis(max(0, round(time.timestamp() * 1000)))


def read_duration(text: str, unit: str = "") -> Millis:
    """90m, 6h, 7d, or P1DT2H as in ISO 8601 and Kafka's tools; a bare number is in `unit`."""
    trimmed = text.strip()
    if unit and trimmed[-1:].isdecimal():
        trimmed += unit
    if short := _SHORT.fullmatch(trimmed):
        number, unit = short.groups()
        return Millis(round(float(number) * _UNITS_MS[unit.lower()]))
    found = _ISO.fullmatch(trimmed)
    if found is None:
        raise BadValue(f"{text!r} is no duration; write 90m, 6h, 7d, or P1DT2H as in ISO 8601")
    sign, *parts = found.groups()
    units = (_UNITS_MS["d"], _UNITS_MS["h"], _UNITS_MS["m"], _UNITS_MS["s"])
    total = sum(
        float(part.replace(",", ".")) * unit
        for part, unit in zip(parts, units, strict=True)
        if part is not None
    )
    return Millis(round(-total if sign == "-" else total))


def read_since(text: str, now_ms: Millis) -> Millis:
    """A time, or how long ago it was; not before 1970."""
    try:
        return Millis(max(0, now_ms - read_duration(text)))
    except BadValue:
        pass
    try:
        return read_time(text)
    except BadValue:
        raise BadValue(
            f"{text!r} is not a point in time; write 2026-11-16T09:00, or how long ago: 90m, 6h, 7d"
        ) from None
