"""Runs the coordinator like a node, with a manual clock.

It stores all records, sets and fires timers, and tracks open tickets. A crash rebuilds the
coordinator from the records and resumes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kohort.coordinator.commands import Command, TimerFired
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.events import GroupEvent
from kohort.coordinator.outcome import Outcome, TimerKey
from kohort.coordinator.records import OneRecord, expand_columns
from kohort.coordinator.replies import Reply
from kohort.types import ErrorCode, Millis


@dataclass
class Driver:
    config: GroupConfig = field(default_factory=GroupConfig)
    now: Millis = Millis(0)
    """The time of timers."""
    wall_ahead_ms: int = 0
    """How far the wall clock is ahead of it; it was set."""
    records: list[OneRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    events: list[GroupEvent] = field(default_factory=list)
    timers: dict[TimerKey, Millis] = field(default_factory=dict)
    append_error: ErrorCode | None = None
    """The error of appends; None if they succeed."""

    def __post_init__(self) -> None:
        self.coordinator = Coordinator(self.config)
        self._carry_out(self.coordinator.resume(self.wall))

    @property
    def wall(self) -> Millis:
        return Millis(self.now + self.wall_ahead_ms)

    def decide(self, command: Command) -> Outcome:
        """Decide, append, apply and release; or fail the outcome if the append fails."""
        outcome = self.coordinator.decide(command, self.wall)
        if outcome.records and self.append_error is not None:
            outcome = self.coordinator.fail(outcome, self.append_error, self.wall)
            assert not outcome.records
        for record in outcome.records:
            self.coordinator.apply(record)
        self._carry_out(outcome)
        return outcome

    def advance(self, until: int) -> list[tuple[TimerKey, Outcome]]:
        """Advance the clock. Timers fire at their deadline; equal deadlines in key order."""
        fired = []
        while True:
            due = [(at, key) for key, at in self.timers.items() if at <= until]
            if not due:
                break
            at, key = min(due)
            del self.timers[key]
            self.now = max(self.now, at)
            fired.append((key, self.decide(TimerFired(key=key))))
        self.now = Millis(until)
        return fired

    def crash(self) -> Outcome:
        """Drop the soft state and rebuild the coordinator from the records."""
        self.coordinator = rebuilt(self.records, self.config)
        self.timers.clear()
        outcome = self.coordinator.resume(self.wall)
        self._carry_out(outcome)
        return outcome

    def _carry_out(self, outcome: Outcome) -> None:
        self.records += expand_columns(outcome.records)
        self.replies += outcome.replies
        self.events += outcome.events
        for key, delay_ms in outcome.timers.items():
            if delay_ms is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = Millis(self.now + delay_ms)


def rebuilt(records: Sequence[OneRecord], config: GroupConfig | None = None) -> Coordinator:
    coordinator = Coordinator(config)
    coordinator.start()
    for record in records:
        coordinator.apply(record)
    return coordinator
