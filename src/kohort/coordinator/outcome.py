"""The result of deciding a command: data that the runtime carries out.

The runtime stores the records first; replies, timers and events become valid once they are stored.
If the records cannot be stored the whole outcome is void, and the runtime calls `Coordinator.fail`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.types import GroupId, MemberId, Millis

if TYPE_CHECKING:
    from kohort.coordinator.events import GroupEvent
    from kohort.coordinator.records import Record
    from kohort.coordinator.replies import Reply


class TimerKind(StrEnum):
    """What a timer limits. Its key names the group or member that it belongs to."""

    SESSION = "session"
    PENDING = "pending"
    INITIAL_DELAY = "initial-delay"
    JOIN = "join"
    SYNC = "sync"
    EXPIRY = "expiry"


SESSION: Final = TimerKind.SESSION
"""A module constant, because looking an enum member up in its class is slow in Python 3.11."""

TIMER_PURPOSES: Final[Mapping[TimerKind, str]] = {
    TimerKind.SESSION: (
        "a member must send heartbeats; a new member's first join must not wait forever"
    ),
    TimerKind.PENDING: "a member id was issued; the member must join with it (KIP-394)",
    TimerKind.INITIAL_DELAY: "an empty group waits for more members before its first generation",
    TimerKind.JOIN: "the members of a rebalancing group must rejoin",
    TimerKind.SYNC: "every member that joined must send a sync (KAFKA-12890)",
    TimerKind.EXPIRY: "expired offsets and groups are to be removed",
}


class TimerKey(NamedTuple):
    kind: TimerKind
    group_id: GroupId = GroupId("")
    member_id: MemberId = MemberId("")

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


@dataclass(slots=True)
class Outcome:
    """Collected while a command is decided, then returned to the runtime."""

    records: "list[Record]"
    replies: "list[Reply]"
    timers: dict[TimerKey, Millis | None]
    """Timers to set, by key, with their delays; None cancels. A key that is set again is moved.

    Delays, not times: the coordinator knows the wall clock only, and deadlines must not depend on
    it."""
    events: "list[GroupEvent]"
    is_deferrable: bool = False
    """Whether the records may be appended and applied later, with those of other such outcomes.

    True for an offset commit to a group that exists: no later CommitOffsets or Heartbeat reads the
    committed offsets. Commands with `sees_deferred` read them, or change what commits depend on.
    """
