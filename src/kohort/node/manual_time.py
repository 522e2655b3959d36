"""Moves the manual clock of a node from deadline to deadline, and lets happen what is due at each.

A long time is as quick as a short one with the same deadlines in it. Periodic work runs in rounds:
the expiry of offsets and groups, the cleaning of logs, and the check for idle connections.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Protocol

from kohort.coordinator.commands import Command, TimerFired
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.node.loop import NodeLoop
from kohort.node.manual_clock import ManualClock
from kohort.types import DeadlineMillis, Millis, value

_ROUNDS_MAX: Final = 1_000
"""Rounds of one kind in one advance. More would take long and have the same result: a round removes
everything that has expired by then."""

_CLEANING_BUDGET_BYTES: Final = 256 * 1024
"""Compacted between two looks at the sockets."""

_EXPIRY: Final = TimerKey(TimerKind.EXPIRY)

_START: Final = DeadlineMillis(0)


class AdvancedServer(Protocol):
    """What an advance needs of the server of the node."""

    def fire_timers(self) -> list[Command]:
        """Handle the group timers that are due; return their commands."""

    async def settle(self) -> None:
        """Handle what has been received, and wait until everything that has begun is done.

        Raises `ControlError` if the node stops.
        """


@value
class FiredTimer:
    """A timer of a group or of a member, and the time of the node at which it fired."""

    key: TimerKey
    at: Millis


@dataclass(slots=True)
class AdvanceResult:
    """What happened while the clock was moved."""

    timers: list[FiredTimer] = field(default_factory=list)
    """In order of time. Rounds of expiry are not among them."""
    rounds: Counter[str] = field(default_factory=Counter)
    """The number of rounds by kind of work."""
    jumps: int = 0
    """The number of times at which something was due."""


@dataclass(slots=True)
class _PeriodicWork:
    name: str
    interval_ms: int
    ran_at: DeadlineMillis = _START

    def due_at(self, spacing_ms: int) -> DeadlineMillis:
        """Rounds are not less than `spacing_ms` apart."""
        return DeadlineMillis(self.ran_at + max(1, self.interval_ms, spacing_ms))


class ManualTime:
    def __init__(self, clock: ManualClock, node: NodeLoop, server: AdvancedServer) -> None:
        self._clock = clock
        self._node = node
        self._server = server
        self._timers = node.broker.groups.timers
        settings = node.broker.settings
        self._expiry = _PeriodicWork(
            "offset-expiry", settings["offsets.retention.check.interval.ms"]
        )
        self._cleaning = _PeriodicWork("log-cleaning", settings["log.retention.check.interval.ms"])
        self._idle_check = _PeriodicWork("idle-connections", settings["connections.max.idle.ms"])
        self._lock = asyncio.Lock()
        """Of two advances at the same time, one waits."""
        self._periodic = (self._expiry, self._cleaning, self._idle_check)

    async def advance(self, ms: int) -> AdvanceResult:
        """Everything that becomes due has happened when it returns, in the order of time."""
        async with self._lock:
            return await self._advance(ms)

    async def _advance(self, ms: int) -> AdvanceResult:
        result = AdvanceResult()
        await self._server.settle()
        # It is one of the rounds here.
        self._timers.cancel(_EXPIRY)
        end = DeadlineMillis(self._clock.deadlines.now + ms)
        spacing_ms = ms // _ROUNDS_MAX
        while (at := self._find_next(spacing_ms)) <= end:
            await self._jump(at, spacing_ms, result)
        # Work whose rounds were further apart than its interval has a last one.
        await self._jump(end, 0, result)
        return result

    def _find_next(self, spacing_ms: int) -> DeadlineMillis:
        """The next time at which something may be due."""
        at = min(work.due_at(spacing_ms) for work in self._periodic)
        timer = self._timers.earliest
        return at if timer is None else max(self._clock.deadlines.now, min(at, timer))

    async def _jump(self, at: DeadlineMillis, spacing_ms: int, result: AdvanceResult) -> None:
        """Move the clock, and complete everything that is due then."""
        self._clock.move_to(at)
        due = [work for work in self._periodic if work.due_at(spacing_ms) <= at]
        if self._expiry in due:
            self._timers.set(_EXPIRY, 0)
        fired = [each.key for each in self._server.fire_timers() if isinstance(each, TimerFired)]
        if not due and not fired:
            return  # a timer was moved or cancelled
        await self._server.settle()
        self._timers.cancel(_EXPIRY)
        if self._cleaning in due:
            await self._clean()
        if self._idle_check in due:
            self._node.close_idle()
            await self._server.settle()
        for work in due:
            work.ran_at = at
            result.rounds[work.name] += 1
        result.timers += [
            FiredTimer(key=key, at=self._clock.now()) for key in fired if key != _EXPIRY
        ]
        result.jumps += 1

    async def _clean(self) -> None:
        while not self._node.clean(_CLEANING_BUDGET_BYTES):
            await self._server.settle()
