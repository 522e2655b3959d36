"""One command being decided: its moment, the limits in force, and the outcome it gathers."""

from typing import Final

from kohort.coordinator.commands import NO_MEMBER, Ticket
from kohort.coordinator.group import Group
from kohort.coordinator.limits import Limits
from kohort.coordinator.notes import Note
from kohort.coordinator.outcome import TimerKey, TimerKind, make_outcome
from kohort.coordinator.records import Record
from kohort.coordinator.replies import Refused, Reply
from kohort.types import ErrorCode, GroupId, MemberId, Millis, maker

_new: Final = tuple.__new__
_make_refused: Final = maker(Refused)


class Turn:
    __slots__ = ("limits", "now", "outcome")

    def __init__(self, now: Millis, limits: Limits) -> None:
        self.now = now
        self.limits = limits
        self.outcome = make_outcome([], [], {}, [])

    def keep(self, record: Record) -> None:
        self.outcome.records.append(record)

    def reply(self, reply: Reply) -> None:
        self.outcome.replies.append(reply)

    def refuse(self, ticket: Ticket, error: ErrorCode, member_id: MemberId = NO_MEMBER) -> None:
        self.outcome.replies.append(_make_refused(ticket, error, member_id))

    def arm(
        self, kind: TimerKind, group_id: GroupId, delay_ms: int, member_id: MemberId = NO_MEMBER
    ) -> None:
        # Every commit comes through here, so the key is made without a call into Python.
        deadline: Millis = self.now + delay_ms  # type: ignore[assignment]  # a call less
        self.outcome.timers[_new(TimerKey, (kind, group_id, member_id))] = deadline

    def disarm(self, kind: TimerKind, group_id: GroupId, member_id: MemberId = NO_MEMBER) -> None:
        self.outcome.timers[TimerKey(kind, group_id, member_id)] = None

    def arm_phase(self, group: Group, kind: TimerKind, delay_ms: int) -> None:
        """A timer of the group itself, bounding the phase it is in."""
        group.roster.armed.add(kind)
        self.arm(kind, group.group_id, delay_ms)

    def disarm_phase(self, group: Group, kind: TimerKind) -> None:
        if kind in group.roster.armed:
            group.roster.armed.discard(kind)
            self.disarm(kind, group.group_id)

    def note(self, note: Note) -> None:
        self.outcome.notes.append(note)
