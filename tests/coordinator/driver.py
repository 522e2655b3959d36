"""Runs the machine as a node would, with a clock that only moves when told to.

It keeps every record, sets and fires timers, and remembers which tickets are still open. Crashing
is rebuilding the machine from the records and resuming it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kohort.coordinator.commands import Command, TimerFired
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import Note
from kohort.coordinator.outcome import Outcome, TimerKey
from kohort.coordinator.records import OneRecord, one_by_one
from kohort.coordinator.replies import Reply
from kohort.types import ErrorCode, Millis


@dataclass
class Driver:
    limits: Limits = field(default_factory=Limits)
    now: Millis = Millis(0)
    records: list[OneRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    timers: dict[TimerKey, Millis] = field(default_factory=dict)
    append_error: ErrorCode | None = None
    """What the log answers with; None while it takes records."""

    def __post_init__(self) -> None:
        self.machine = Coordinator(self.limits)
        self._carry_out(self.machine.resume(self.now))

    def decide(self, command: Command) -> Outcome:
        """Decide, append, apply, release; or be told that nothing was kept."""
        outcome = self.machine.decide(command, self.now)
        if outcome.records and self.append_error is not None:
            outcome = self.machine.fail(outcome, self.append_error, self.now)
            assert not outcome.records
        for record in outcome.records:
            self.machine.apply(record)
        self._carry_out(outcome)
        return outcome

    def advance(self, until: int) -> list[tuple[TimerKey, Outcome]]:
        """Let time pass; due timers fire at their time, those of one moment in the keys' order."""
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
        """Everything soft is gone; the records bring the rest back."""
        self.machine = rebuilt(self.records, self.limits)
        self.timers.clear()
        outcome = self.machine.resume(self.now)
        self._carry_out(outcome)
        return outcome

    def _carry_out(self, outcome: Outcome) -> None:
        self.records += one_by_one(outcome.records)
        self.replies += outcome.replies
        self.notes += outcome.notes
        for key, deadline in outcome.timers.items():
            if deadline is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = deadline


def rebuilt(records: Sequence[OneRecord], limits: Limits | None = None) -> Coordinator:
    machine = Coordinator(limits)
    machine.start()
    for record in records:
        machine.apply(record)
    return machine
