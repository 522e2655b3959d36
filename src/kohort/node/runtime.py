"""Runs a state machine on a log: decide, append, apply, release.

The runtime is generic over its machine, so that every coordinator has the same guarantees:

- A command is decided only when the records of all earlier outcomes are applied, except for records
  that the machine itself calls deferrable.
- A reply is delivered only after its records are appended and applied, and, with fsync, synced.
- If records cannot be appended, their outcome is void and the machine decides what happens instead.

Delivering a reply never submits another command: a reply only marks its connection for a later
stage of the event-loop iteration. Nothing here waits or reads a clock: `now` is the time of the
wall clock, for timestamps, and `Runtime.timers` has the time from which delays count.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from kohort.coordinator.commands import Ticket
from kohort.node.syncer import Syncer
from kohort.node.timers import Timers
from kohort.types import DeadlineMillis, ErrorCode, Millis


class Command(Protocol):
    sees_deferred: ClassVar[bool]
    """Whether its decision may depend on deferred records; they are appended first if so."""


class Reply(Protocol):
    @property
    def ticket(self) -> Ticket: ...


C = TypeVar("C", bound=Command)
C_contra = TypeVar("C_contra", bound=Command, contravariant=True)
R = TypeVar("R")
P = TypeVar("P", bound=Reply)
P_contra = TypeVar("P_contra", contravariant=True)
E = TypeVar("E")
K = TypeVar("K")


class MachineOutcome(Protocol[R, P, E, K]):
    """What a machine decided: records to append, and what holds once they are applied."""

    records: list[R]
    replies: list[P]
    timers: dict[K, Millis | None]
    """Timers to set, with their delays; None cancels."""
    events: list[E]
    is_deferrable: bool
    """No command whose `sees_deferred` is false depends on these records being applied."""


class StateMachine(Protocol[C_contra, R, P, E, K]):
    def decide(self, command: C_contra, now: Millis, /) -> MachineOutcome[R, P, E, K]: ...

    def apply_all(self, records: Sequence[R], /) -> None: ...

    def fail(self, failed: Any, error: ErrorCode, now: Millis, /) -> MachineOutcome[R, P, E, K]:
        """Return what happens instead when the records of an outcome cannot be appended.

        The result has no records.
        """

    def resume(self, now: Millis, /) -> MachineOutcome[R, P, E, K]:
        """What to do first after the state was rebuilt from the log."""


class RecordWriter(Protocol[R]):
    """Appends the records of outcomes to the log, each outcome as a whole.

    For each outcome it returns the records that are in the log now, or the error that kept all of
    them out. Records of one outcome that go to several partitions may be appended in part.
    """

    def append(self, outcomes: Sequence[tuple[list[R], Millis]]) -> list[list[R] | ErrorCode]: ...


class ReplyWaiter(Protocol[P_contra]):
    """Waits for the reply to one ticket."""

    def deliver(self, reply: P_contra, /) -> None:
        """Must not submit a command: the reply is sent in a later stage of the iteration."""


class InconsistentState(Exception):
    """An internal error happened while records were appended or applied.

    Memory and log may disagree, so the node must stop.
    """


_DEFERRED_MAX: Final = 1_000
"""Outcomes that wait for the end of an iteration; bounds memory and the size of one write."""


class Runtime(Generic[C, R, P, E, K]):
    """One state machine with its timers, its open tickets and the log behind it."""

    def __init__(
        self,
        machine: StateMachine[C, R, P, E, K],
        writer: RecordWriter[R],
        syncer: Syncer | None,
        *,
        timer_fired: Callable[[K], C],
        unsynced_replies: tuple[type[P], ...],
    ) -> None:
        """Without a syncer, what is appended counts as durable.

        `timer_fired` makes the command for a timer that is due. `unsynced_replies` are the replies
        that reveal nothing a crash could undo, and so wait for no sync.
        """
        self.machine = machine
        self._writer = writer
        self._syncer = syncer
        self._timer_fired = timer_fired
        self._unsynced_replies = unsynced_replies
        self.timers: Timers[K] = Timers()
        self._open: dict[Ticket, ReplyWaiter[P]] = {}
        self._last_ticket = 0
        self.deferred: list[tuple[MachineOutcome[R, P, E, K], Millis]] = []
        """Outcomes whose records are still to be appended, with the time of their decision."""
        self._appends = self._synced_appends = 0
        """Calls that appended records, and how many of them are known to be synced."""
        self._is_storing = False
        self._held_count = 0
        """Groups of replies that wait for a sync."""
        self.events: list[E] = []
        """Events of this iteration, in order; the owner takes them."""
        self.appended: list[R] = []
        """Records appended in this iteration; the owner takes them."""

    @property
    def open_tickets(self) -> int:
        return len(self._open)

    def open(self, waiter: ReplyWaiter[P]) -> Ticket:
        """Issue a ticket for one request; its reply is delivered to the waiter exactly once."""
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        self._open[ticket] = waiter
        return ticket

    # Deciding

    def submit(self, command: C, now: Millis) -> None:
        assert not self._is_storing, "a command was submitted between append and apply"
        if command.sees_deferred and self.deferred:
            self.append_deferred()
        outcome = self.machine.decide(command, now)
        if not outcome.records:
            self._settle(outcome)
            if outcome.replies:
                self._send(outcome.replies, has_records=False)
        elif outcome.is_deferrable:
            self._defer(outcome, now)
        else:
            self.append_deferred()
            self._append([(outcome, now)])

    def answer_now(self, command: C, now: Millis) -> P:
        """Return the reply to a command that stores nothing and is always answered at once.

        It needs no ticket. It must not depend on deferred records, cancel timers or have events.
        """
        assert not command.sees_deferred, f"{command} needs a ticket"
        outcome = self.machine.decide(command, now)
        for key, delay_ms in outcome.timers.items():
            assert delay_ms is not None, f"{command} cancels a timer"
            self.timers.set(key, delay_ms)
        (reply,) = outcome.replies
        return reply

    def resume(self, now: Millis) -> None:
        """Called once, after the machine's state was rebuilt from the log."""
        outcome = self.machine.resume(now)
        assert not outcome.records, "resuming stores nothing"
        self._settle(outcome)

    def take_due(self, deadline: DeadlineMillis) -> list[C]:
        """Return the commands for timers that are due, in the order of their deadlines."""
        return [self._timer_fired(key) for key in self.timers.take_due(deadline)]

    def fire_due(self, deadline: DeadlineMillis, now: Millis) -> None:
        for command in self.take_due(deadline):
            self.submit(command, now)

    # Appending and applying

    def _defer(self, outcome: MachineOutcome[R, P, E, K], now: Millis) -> None:
        # Its timers are set even if the records cannot be appended: the member is alive.
        self._settle(outcome)
        self.deferred.append((outcome, now))
        if len(self.deferred) == _DEFERRED_MAX:
            self.append_deferred()

    def append_deferred(self) -> None:
        """Append the deferred records in one write, and apply them."""
        deferred, self.deferred = self.deferred, []
        if deferred:
            self._append(deferred, is_settled=True)

    def _append(
        self, decided: list[tuple[MachineOutcome[R, P, E, K], Millis]], *, is_settled: bool = False
    ) -> None:
        replies: list[P] = []
        self._is_storing = True
        try:
            stored = self._writer.append([(outcome.records, at) for outcome, at in decided])
            for result, (outcome, at) in zip(stored, decided, strict=True):
                if isinstance(result, ErrorCode):
                    failed = self.machine.fail(outcome, result, at)
                    assert not failed.records, "a failed outcome stores nothing"
                    self._settle(failed)
                    replies += failed.replies
                    continue
                self.machine.apply_all(result)
                self.appended += result
                if not is_settled:
                    self._settle(outcome)
                replies += outcome.replies
        except Exception as error:
            raise InconsistentState(f"{type(error).__name__}: {error}") from error
        finally:
            self._is_storing = False
        self._appends += 1
        if replies:
            self._send(replies, has_records=True)

    def _settle(self, outcome: MachineOutcome[R, P, E, K]) -> None:
        """Set the timers and take the events, before any reply is sent."""
        for key, delay_ms in outcome.timers.items():
            if delay_ms is None:
                self.timers.cancel(key)
            else:
                self.timers.set(key, delay_ms)
        if outcome.events:
            self.events += outcome.events

    # Replying

    def _send(self, replies: list[P], *, has_records: bool) -> None:
        """Replies also wait for a sync when they reveal records that a crash could still undo, and
        when earlier replies wait: otherwise one about an older generation could come later."""
        syncer = self._syncer
        if (
            syncer is None
            or (self._synced_appends == self._appends and not self._held_count)
            or (not has_records and self._reveal_nothing(replies))
        ):
            self.deliver(replies)
        else:
            self._held_count += 1
            syncer.hold(_HeldReplies(self, replies, self._appends))

    def _reveal_nothing(self, replies: Iterable[P]) -> bool:
        return all(isinstance(reply, self._unsynced_replies) for reply in replies)

    def deliver(self, replies: list[P]) -> None:
        for reply in replies:
            waiter = self._open.pop(reply.ticket, None)
            if waiter is None:
                raise InconsistentState(f"there are two replies to ticket {reply.ticket}")
            waiter.deliver(reply)

    def synced(self, appends: int) -> None:
        """The first `appends` appends are synced, and one group of held replies is released."""
        self._held_count -= 1
        self._synced_appends = max(self._synced_appends, appends)


class _HeldReplies(Generic[P]):
    __slots__ = ("_appends", "_replies", "_runtime")

    def __init__(
        self, runtime: "Runtime[Any, Any, P, Any, Any]", replies: list[P], appends: int
    ) -> None:
        self._runtime = runtime
        self._replies = replies
        self._appends = appends

    def release(self) -> None:
        self._runtime.synced(self._appends)
        self._runtime.deliver(self._replies)
