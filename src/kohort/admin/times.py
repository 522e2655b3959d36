"""Moments and durations as operators write them, in Kafka's way and in shorter ones. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

from kohort.admin.errors import WrongWish
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


def read_moment(text: str) -> Millis:
    """Since 1970, of 2026-11-16T09:00 and all that ISO 8601 writes; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise WrongWish(
            f"{text!r} is no moment; write 2026-11-16T09:00 or as in ISO 8601"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Millis(max(0, round(moment.timestamp() * 1000)))


def read_duration(text: str) -> Millis:
    """Of P1DT2H as ISO 8601 and Kafka's tools write it, or of 90m, 6h, 7d."""
    trimmed = text.strip()
    if short := _SHORT.fullmatch(trimmed):
        number, unit = short.groups()
        return Millis(round(float(number) * _UNITS_MS[unit.lower()]))
    found = _ISO.fullmatch(trimmed)
    if found is None:
        raise WrongWish(f"{text!r} is no duration; write 90m, 6h, 7d, or P1DT2H as in ISO 8601")
    sign, *parts = found.groups()
    units = (_UNITS_MS["d"], _UNITS_MS["h"], _UNITS_MS["m"], _UNITS_MS["s"])
    total = sum(
        float(part.replace(",", ".")) * unit
        for part, unit in zip(parts, units, strict=True)
        if part is not None
    )
    return Millis(round(-total if sign == "-" else total))


def read_since(text: str, now_ms: Millis) -> Millis:
    """A moment, or how long ago it was; not before 1970."""
    try:
        return Millis(max(0, now_ms - read_duration(text)))
    except WrongWish:
        pass
    try:
        return read_moment(text)
    except WrongWish:
        raise WrongWish(
            f"{text!r} is no time; write a moment as 2026-11-16T09:00, or how long ago: 90m, 6h, 7d"
        ) from None


def write_moment(moment_ms: Millis) -> str:
    """With its zone, to the millisecond."""
    moment = datetime.fromtimestamp(moment_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment_ms % 1000:03d}Z"
