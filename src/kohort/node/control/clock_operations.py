"""The operations `clock` and `advance`: read the node's clock, and move it if it is manual."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kohort.node.control.errors import ControlError
from kohort.node.manual_time import FiredTimer
from kohort.settings.readers import read_decimal

if TYPE_CHECKING:
    from kohort.node.server import Server

_UNITS: Final = {"milliseconds": 1, "seconds": 1000}
"""The fields of `advance`, in milliseconds."""

_ADVANCE_MS_MAX: Final = 100 * 365 * 24 * 3_600_000
"""A hundred years, so that every time can be written as a date."""


async def read_clock(server: "Server", _: object) -> dict[str, Any]:
    is_manual = server.manual_time is not None
    return {"clock": "manual" if is_manual else "real", "now_ms": server.clock.now()}


async def advance(server: "Server", body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns when everything that became due has happened."""
    if server.manual_time is None:
        raise ControlError(
            "this node has the real clock, which cannot be moved: start it with the setting"
            " kohort.clock=manual"
        )
    result = await server.manual_time.advance(_read_duration(body))
    return {
        "now_ms": server.clock.now(),
        "timers": [_describe(timer) for timer in result.timers],
        "rounds": dict(result.rounds),
        "jumps": result.jumps,
    }


def _read_duration(body: Mapping[str, Any]) -> int:
    if not body or not body.keys() <= _UNITS.keys():
        given = ", ".join(body) or "nothing"
        raise ControlError(f"advance takes seconds or milliseconds, or both; given: {given}")
    ms = round(sum(_read_amount(name, given) * _UNITS[name] for name, given in body.items()))
    if not 0 < ms <= _ADVANCE_MS_MAX:
        raise ControlError(
            f"advance by {ms} ms: the clock moves forward by at least 1 ms and at most"
            f" {_ADVANCE_MS_MAX} ms (100 years)"
        )
    return ms


def _read_amount(name: str, given: object) -> float:
    try:
        return read_decimal(str(given), -_ADVANCE_MS_MAX, _ADVANCE_MS_MAX)
    except ValueError as error:
        raise ControlError(f"{name}={given!r}: {error}") from None


def _describe(timer: FiredTimer) -> dict[str, Any]:
    key = timer.key
    return {
        "timer": key.kind.value,
        "group": key.group_id,
        "member": key.member_id or None,
        "at_ms": timer.at,
    }
