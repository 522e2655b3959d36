"""The trace of a running rebalance: its cause, when each member joined and synced, who was removed.

Soft state: it is lost at a restart, and the next rebalance starts a new one.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kohort.coordinator.events import (
    JoinEnd,
    MemberInfo,
    MemberRemoval,
    RebalanceEnded,
    RebalanceParticipant,
    RebalanceResult,
    Trigger,
)
from kohort.coordinator.groups.classic.states import GroupState
from kohort.types import Generation, GroupId, MemberId, Millis, value

if TYPE_CHECKING:
    from kohort.coordinator.groups.classic.group import ClassicGroup


@value
class Cause:
    """Why a rebalance begins: the trigger, the member behind it, and the reason the client gave."""

    trigger: Trigger
    initiator: MemberInfo | None = None
    client_reason: str | None = None
    removals: tuple[MemberRemoval, ...] = ()
    """Members that were removed before the rebalance began, and caused it."""


@dataclass(slots=True)
class RebalanceTrace:
    cause: Cause
    state_before: GroupState
    generation_before: Generation
    started_ms: Millis
    had: dict[MemberId, bytes]
    """The assignment of each member when the rebalance began."""
    joined_ms: dict[MemberId, Millis] = field(default_factory=dict)
    synced_ms: dict[MemberId, Millis] = field(default_factory=dict)
    removals: list[MemberRemoval] = field(default_factory=list)
    join_ended_ms: Millis | None = None
    join_ended_by: JoinEnd | None = None
    leader: MemberId | None = None
    members: tuple[MemberInfo, ...] | None = None
    """The members of the generation that the join phase formed, even if they leave later."""

    def end_join(self, group: "ClassicGroup", ended_by: JoinEnd, now: Millis) -> None:
        self.join_ended_ms = now
        self.join_ended_by = ended_by
        self.leader = group.leader
        self.members = tuple(member.identity for member in group.members.values())

    def replaced(self, old_id: MemberId, new_id: MemberId) -> None:
        """Move the assignment of a restarted static member to its new id."""
        if old_id in self.had:
            self.had[new_id] = self.had.pop(old_id)

    def end(
        self,
        group_id: GroupId,
        group: "ClassicGroup",
        ending: RebalanceResult,
        now: Millis,
        *,
        generation: Generation | None = None,
        got: dict[MemberId, bytes] | None = None,
    ) -> RebalanceEnded:
        members = self.members
        if members is None:
            members = tuple(member.identity for member in group.members.values())
        return RebalanceEnded(
            at=now,
            group_id=group_id,
            ending=ending,
            trigger=self.cause.trigger,
            initiator=self.cause.initiator,
            client_reason=self.cause.client_reason,
            state_before=self.state_before,
            generation_before=self.generation_before,
            generation=group.generation if generation is None else generation,
            started_ms=self.started_ms,
            join_ended_ms=self.join_ended_ms,
            join_ended_by=self.join_ended_by,
            protocol_type=group.protocol_type,
            protocol=group.protocol if members else None,
            leader=group.leader if self.members is None else self.leader,
            participants=tuple(self._participant(member, got or {}) for member in members),
            removals=tuple(self.removals),
        )

    def _participant(self, member: MemberInfo, got: dict[MemberId, bytes]) -> RebalanceParticipant:
        member_id = member.member_id
        return RebalanceParticipant(
            member,
            _took(self.started_ms, self.joined_ms.get(member_id)),
            _took(self.join_ended_ms, self.synced_ms.get(member_id)),
            self.had.get(member_id, b""),
            got.get(member_id, b""),
        )


def _took(start: Millis | None, end: Millis | None) -> Millis | None:
    """At least nothing, because the clock may be set back between the two times."""
    return None if start is None or end is None else Millis(max(0, end - start))
