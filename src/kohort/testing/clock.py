"""The clock of a node that a test moves: `node.clock`.

with kohort.Node(clock="manual") as node:
    node.clock.advance(minutes=5)
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kohort.testing.control_channel import ControlChannel
from kohort.text.times import date_of
from kohort.types import value


@value
class ClockTimer:
    """A timer of a group that has fired."""

    kind: str
    """What it limits: session, pending, initial-delay, join or sync."""
    group: str
    member: str | None
    """The member, if it is a timer of one member."""
    at: datetime
    """The time of the node."""


@value
class ClockAdvance:
    """What happened while the clock was moved."""

    now: datetime
    timers: tuple[ClockTimer, ...]
    """In the order in which they fired."""
    rounds: Mapping[str, int]
    """How often periodic work was done: offset-expiry, log-cleaning and idle-connections."""
    jumps: int
    """At how many different times something was due."""


class NodeClock:
    """The node's clock. Only a manual one can be moved; every clock can be read."""

    def __init__(self, channel: ControlChannel) -> None:
        self._channel = channel

    @property
    def now(self) -> datetime:
        """The node's time, in UTC."""
        return date_of(self.now_ms)

    @property
    def now_ms(self) -> int:
        """The node's time, in milliseconds since 1970, as in Kafka's timestamps."""
        now_ms: int = self._channel.request("clock", {})["now_ms"]
        return now_ms

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> ClockAdvance:
        """Move the clock forward. Everything that becomes due has happened when it returns.

        Raises ValueError if the time is not positive, and `ControlError` if the node has the real
        clock.
        """
        by = timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        ms = round(by / timedelta(milliseconds=1))
        if ms <= 0:
            raise ValueError(
                f"advance by {ms} ms: the clock only moves forward; give at least one of days,"
                " hours, minutes, seconds and milliseconds, for example advance(minutes=5)"
            )
        return _read_advance(self._channel.request("advance", {"milliseconds": ms}))


def _read_advance(result: Mapping[str, Any]) -> ClockAdvance:
    return ClockAdvance(
        now=date_of(result["now_ms"]),
        timers=tuple(
            ClockTimer(
                kind=timer["timer"],
                group=timer["group"],
                member=timer["member"],
                at=date_of(timer["at_ms"]),
            )
            for timer in result["timers"]
        ),
        rounds=result["rounds"],
        jumps=result["jumps"],
    )
