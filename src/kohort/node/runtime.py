"""Runs the coordinator: decide, append, apply, release.

Synchronous on purpose: whoever owns the loop calls in with commands and with the time, so that a
simulation runs this file unchanged. A reply never leaves before its records are kept.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kohort.coordinator.commands import Command, Heartbeat, Ticket, TimerFired
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import Note
from kohort.coordinator.outcome import Outcome, TimerKey
from kohort.coordinator.records import Record
from kohort.coordinator.replies import HeartbeatHeard, Refused, Reply
from kohort.node.timers import Timers
from kohort.types import ErrorCode, Millis


class Keeper(Protocol):
    """Where records are kept: all of them, or those of some partitions, or NotKept is raised.

    `when_durable` runs what it is given once everything kept so far is safe.
    """

    def keep(self, records: list[Record], now: Millis) -> list[Record]: ...

    def when_durable(self, then: Callable[[], None]) -> None: ...

    @property
    def is_durable(self) -> bool: ...


class NotKept(Exception):
    """Records could not be kept; carries the error that says why."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


Deliver = Callable[[Reply], None]


class Runtime:
    """The coordinator with its timers, its open tickets and the log behind it."""

    def __init__(
        self,
        coordinator: Coordinator,
        keeper: Keeper,
        on_notes: Callable[[list[Note]], None],
    ) -> None:
        self.coordinator = coordinator
        self._keeper = keeper
        self._on_notes = on_notes
        self._timers: Timers[TimerKey] = Timers()
        self.next_deadline = self._timers.next_deadline
        self._open: dict[Ticket, Deliver] = {}
        self._next_ticket = 0
        self._held = 0
        """How many outcomes' replies wait for the disk."""

    def issue(self, deliver: Deliver) -> Ticket:
        """A ticket for a request; `deliver` is called once, at once or whenever it is answered."""
        self._next_ticket += 1
        ticket = Ticket(self._next_ticket)
        self._open[ticket] = deliver
        return ticket

    def forget(self, ticket: Ticket) -> None:
        """Nobody waits for this answer any more."""
        if ticket in self._open:
            self._open[ticket] = _discard

    @property
    def open_tickets(self) -> int:
        return len(self._open)

    def submit(self, command: Command, now: Millis) -> None:
        outcome = self.coordinator.decide(command, now)
        if outcome.records:
            try:
                kept = self._keeper.keep(outcome.records, now)
            except NotKept as error:
                outcome = self.coordinator.fail(outcome, error.code, now)
                assert not outcome.records
            else:
                self.coordinator.apply_all(kept)
        self._release(outcome)

    def answer_at_once(self, command: Heartbeat, now: Millis) -> Reply:
        """For the one command that never waits and keeps nothing: no ticket need be remembered."""
        outcome = self.coordinator.decide(command, now)
        (reply,) = outcome.replies
        for key, deadline in outcome.timers.items():
            assert deadline is not None, "a heartbeat cancels nothing"
            self._timers.set(key, deadline)
        return reply

    def resume(self, now: Millis) -> None:
        self._release(self.coordinator.resume(now))

    def fire_due(self, now: Millis) -> None:
        due = deque(self._timers.take_due(now))
        while due:
            self.submit(TimerFired(key=due.popleft()), now)

    def _release(self, outcome: Outcome) -> None:
        for key, deadline in outcome.timers.items():
            if deadline is None:
                self._timers.cancel(key)
            else:
                self._timers.set(key, deadline)
        if outcome.notes:
            self._on_notes(outcome.notes)
        if not outcome.replies:
            return
        is_safe = self._keeper.is_durable and not self._held
        if is_safe or (not outcome.records and _reveals_nothing(outcome.replies)):
            self._deliver(outcome.replies)
        else:
            self._hold(outcome.replies)

    def _hold(self, replies: list[Reply]) -> None:
        """Also answers that only read: they must not tell what a crash could still undo.

        And also those that come when the disk has just caught up: whoever waits for a later sync
        than was needed must not be told of a generation that others were told is over.
        """
        self._held += 1

        def release() -> None:
            self._held -= 1
            self._deliver(replies)

        self._keeper.when_durable(release)

    def _deliver(self, replies: list[Reply]) -> None:
        for reply in replies:
            self._open.pop(reply.ticket)(reply)


def _reveals_nothing(replies: list[Reply]) -> bool:
    return all(isinstance(reply, HeartbeatHeard | Refused) for reply in replies)


def _discard(reply: Reply) -> None:
    """The connection is gone; the member's session will tell the rest."""
