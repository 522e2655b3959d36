"""Runs the coordinator: decide, append, apply, release.

Synchronous on purpose: whoever owns the loop calls in with commands and with the time, so that a
simulation runs this file unchanged. A reply never leaves before its records are kept.

Commits to groups that exist decide nothing about each other. Those of one turn of the loop are
decided one by one and then kept together, in one write; whatever else is asked waits for that.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from kohort.coordinator.commands import Command, CommitOffsets, Heartbeat, Ticket, TimerFired
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import Note
from kohort.coordinator.outcome import Outcome, TimerKey
from kohort.coordinator.records import Record
from kohort.coordinator.replies import HeartbeatHeard, Refused, Reply
from kohort.node.timers import Timers
from kohort.types import ErrorCode, Millis


class Decided(NamedTuple):
    """What a commit comes to, if its records can be kept, and when that was decided."""

    outcome: Outcome
    at: Millis


class Keeper(Protocol):
    """Where records are kept: all of them, or those of some partitions, or NotKept is raised.

    `when_durable` runs what it is given once everything kept so far is safe.
    """

    def keep(self, records: list[Record], now: Millis) -> list[Record]: ...

    def keep_each(self, decided: Sequence[Decided]) -> list[ErrorCode | None]:
        """The records of many commits, each for itself: what kept them out, None where nothing."""
        return [self._try_to_keep(each) for each in decided]

    def _try_to_keep(self, decided: Decided) -> ErrorCode | None:
        try:
            self.keep(decided.outcome.records, decided.at)
        except NotKept as error:
            return error.code
        return None

    def complete_fetches(self) -> None:
        """Answer the fetches that waited for the kept records.

        The client of an answered fetch may have pipelined its next request, which is then decided
        at once. This is therefore called only after the records have been applied.
        """

    def when_durable(self, then: Callable[[], None]) -> None: ...

    @property
    def is_durable(self) -> bool: ...


class NotKept(Exception):
    """Records could not be kept; carries the error that says why."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


Deliver = Callable[[Reply], None]

CallSoon = Callable[[Callable[[], None]], object]

_GATHERED_MAX: Final = 1_000
"""Commits that wait for the end of a turn; protects memory where very many come in one."""


class Runtime:
    """The coordinator with its timers, its open tickets and the log behind it."""

    def __init__(
        self,
        coordinator: Coordinator,
        keeper: Keeper,
        on_notes: Callable[[list[Note]], None],
        call_soon: CallSoon | None = None,
    ) -> None:
        """`call_soon` has something done at the end of this turn; without it, all is at once."""
        self.coordinator = coordinator
        self._keeper = keeper
        self._on_notes = on_notes
        self._timers: Timers[TimerKey] = Timers()
        self.next_deadline = self._timers.next_deadline
        self._open: dict[Ticket, Deliver] = {}
        self._next_ticket = 0
        self._held = 0
        """How often replies wait for the disk."""
        self._call_soon = call_soon
        self._gathered: list[Decided] = []

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
        if (
            isinstance(command, CommitOffsets)
            and self._call_soon is not None
            and command.group_id in self.coordinator.groups
        ):
            self._gather(self.coordinator.decide(command, now), now, self._call_soon)
            return
        self.keep_gathered()
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
        self._keeper.complete_fetches()

    def _gather(self, outcome: Outcome, now: Millis, call_soon: CallSoon) -> None:
        if not outcome.records:
            self._release(outcome)
            return
        # A member that commits is alive, whatever becomes of its commit.
        self._settle(outcome)
        self._gathered.append(Decided(outcome, now))
        if len(self._gathered) == 1:
            call_soon(self.keep_gathered)
        elif len(self._gathered) == _GATHERED_MAX:
            self.keep_gathered()

    def keep_gathered(self) -> None:
        """Everybody's records before anybody's answer: who is answered may ask on at once."""
        gathered, self._gathered = self._gathered, []
        if not gathered:
            return
        replies: list[Reply] = []
        faults = self._keeper.keep_each(gathered)
        for fault, (outcome, at) in zip(faults, gathered, strict=True):
            if fault is None:
                self.coordinator.apply_all(outcome.records)
                replies += outcome.replies
            else:
                failed = self.coordinator.fail(outcome, fault, at)
                self._settle(failed)
                replies += failed.replies
        self._tell(replies, is_kept=True)
        self._keeper.complete_fetches()

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
        self.keep_gathered()
        due = deque(self._timers.take_due(now))
        while due:
            self.submit(TimerFired(key=due.popleft()), now)

    def _release(self, outcome: Outcome) -> None:
        self._settle(outcome)
        if outcome.replies:
            self._tell(outcome.replies, is_kept=bool(outcome.records))

    def _settle(self, outcome: Outcome) -> None:
        """All that holds before anybody is told."""
        for key, deadline in outcome.timers.items():
            if deadline is None:
                self._timers.cancel(key)
            else:
                self._timers.set(key, deadline)
        if outcome.notes:
            self._on_notes(outcome.notes)

    def _tell(self, replies: list[Reply], *, is_kept: bool) -> None:
        """`is_kept` says that they tell of records which were kept just now."""
        is_safe = self._keeper.is_durable and not self._held
        if is_safe or (not is_kept and _reveals_nothing(replies)):
            self._deliver(replies)
        else:
            self._hold(replies)

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
