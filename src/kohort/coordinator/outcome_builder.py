"""Collects the outcome of one command while it is decided, with the time and the configuration.

The time is that of the wall clock, for timestamps and expiry. Timers have delays instead.
"""

from kohort.coordinator.commands import NO_MEMBER, Ticket
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.events import GroupEvent
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.records import Record
from kohort.coordinator.replies import Reply, RequestRefused
from kohort.types import ErrorCode, GroupId, MemberId, Millis


class OutcomeBuilder:
    __slots__ = ("config", "now", "outcome")

    def __init__(self, now: Millis, config: GroupConfig) -> None:
        self.now = now
        self.config = config
        self.outcome = Outcome([], [], {}, [])

    def append(self, record: Record) -> None:
        self.outcome.records.append(record)

    def reply(self, reply: Reply) -> None:
        self.outcome.replies.append(reply)

    def refuse(self, ticket: Ticket, error: ErrorCode, member_id: MemberId = NO_MEMBER) -> None:
        self.outcome.replies.append(RequestRefused(ticket, error, member_id))

    def arm(
        self, kind: TimerKind, group_id: GroupId, delay_ms: int, member_id: MemberId = NO_MEMBER
    ) -> None:
        self.outcome.timers[TimerKey(kind, group_id, member_id)] = Millis(delay_ms)

    def disarm(self, kind: TimerKind, group_id: GroupId, member_id: MemberId = NO_MEMBER) -> None:
        self.outcome.timers[TimerKey(kind, group_id, member_id)] = None

    def emit(self, event: GroupEvent) -> None:
        self.outcome.events.append(event)
