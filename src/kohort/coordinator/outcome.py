"""What the coordinator answers with: data for somebody else to carry out.

Records are to be kept first; replies, timers and notes hold once they are. If the records cannot
be kept the whole outcome is void, and the machine is told so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.types import GroupId, MemberId, Millis, maker

if TYPE_CHECKING:
    from kohort.coordinator.notes import Note
    from kohort.coordinator.records import Record
    from kohort.coordinator.replies import Reply


class TimerKind(StrEnum):
    """What a timer watches over. Its key names the living thing it belongs to."""

    SESSION = "session"
    PENDING = "pending"
    INITIAL_DELAY = "initial-delay"
    JOIN = "join"
    SYNC = "sync"
    EXPIRY = "expiry"


SESSION: Final = TimerKind.SESSION
"""Under a name of its own: to find it in its class takes as long as to set the timer."""

WATCHES: Final[Mapping[TimerKind, str]] = {
    TimerKind.SESSION: (
        "a member must be heard of; while it is new, it must not wait in its first join for ever"
    ),
    TimerKind.PENDING: "an id was handed out; its bearer must come back with it (KIP-394)",
    TimerKind.INITIAL_DELAY: "an empty group waits for the rest of a starting fleet",
    TimerKind.JOIN: "the members of a rebalancing group must rejoin",
    TimerKind.SYNC: "everyone who joined must ask for an assignment (KAFKA-12890)",
    TimerKind.EXPIRY: "time to look for offsets and groups that nobody needs any more",
}


class TimerKey(NamedTuple):
    kind: TimerKind
    group_id: GroupId = GroupId("")
    member_id: MemberId = MemberId("")

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


@dataclass(slots=True)
class Outcome:
    """Gathered while a command is decided, then handed over whole."""

    records: "list[Record]" = field(default_factory=list)
    replies: "list[Reply]" = field(default_factory=list)
    timers: dict[TimerKey, Millis | None] = field(default_factory=dict)
    """Deadlines to set, by key; None cancels. A key that is set again is moved."""
    notes: "list[Note]" = field(default_factory=list)


make_outcome: Final = maker(Outcome)
"""The same from all four parts, quicker: there is one for every command."""
