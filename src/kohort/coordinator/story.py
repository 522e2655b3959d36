"""The story of a rebalance while it is being written: who began it, who was waited for, who came.

Soft state: a restart forgets it, and the next rebalance begins a new one.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kohort.coordinator.notes import (
    Ending,
    JoinEnd,
    Participant,
    Party,
    RebalanceEnded,
    Removal,
    Trigger,
)
from kohort.coordinator.states import GroupState
from kohort.types import Generation, GroupId, MemberId, Millis, maker, value

if TYPE_CHECKING:
    from kohort.coordinator.group import Roster


@value
class Cause:
    """Why a rebalance begins: the trigger, who pulled it, and what the client said of it."""

    trigger: Trigger
    culprit: Party | None = None
    client_reason: str | None = None
    removals: tuple[Removal, ...] = ()
    """Who is out because of it, before the rebalance even begins."""


@dataclass(slots=True)
class Story:
    cause: Cause
    state_before: GroupState
    generation_before: Generation
    started_ms: Millis
    had: dict[MemberId, bytes]
    """What each member held when it began."""
    joined_ms: dict[MemberId, Millis] = field(default_factory=dict)
    synced_ms: dict[MemberId, Millis] = field(default_factory=dict)
    removals: list[Removal] = field(default_factory=list)
    join_ended_ms: Millis | None = None
    join_ended_by: JoinEnd | None = None
    leader: MemberId | None = None
    parties: tuple[Party, ...] | None = None
    """Who is in the generation that the join phase formed, whatever becomes of them after."""

    def end_join(self, roster: "Roster", ended_by: JoinEnd, now: Millis) -> None:
        self.join_ended_ms = now
        self.join_ended_by = ended_by
        self.leader = roster.leader
        self.parties = tuple(member.party for member in roster.members.values())

    def replaced(self, old_id: MemberId, new_id: MemberId) -> None:
        """What a static member had, it still has under its new id."""
        if old_id in self.had:
            self.had[new_id] = self.had.pop(old_id)

    def end(
        self,
        group_id: GroupId,
        roster: "Roster",
        ending: Ending,
        now: Millis,
        *,
        generation: Generation | None = None,
        got: dict[MemberId, bytes] | None = None,
    ) -> RebalanceEnded:
        parties = self.parties
        if parties is None:
            parties = tuple(member.party for member in roster.members.values())
        return RebalanceEnded(
            at=now,
            group_id=group_id,
            ending=ending,
            trigger=self.cause.trigger,
            culprit=self.cause.culprit,
            client_reason=self.cause.client_reason,
            state_before=self.state_before,
            generation_before=self.generation_before,
            generation=roster.generation if generation is None else generation,
            started_ms=self.started_ms,
            join_ended_ms=self.join_ended_ms,
            join_ended_by=self.join_ended_by,
            protocol_type=roster.protocol_type,
            protocol=roster.protocol if parties else None,
            leader=roster.leader if self.parties is None else self.leader,
            participants=tuple(self._participant(party, got or {}) for party in parties),
            removals=tuple(self.removals),
        )

    def _participant(self, party: Party, got: dict[MemberId, bytes]) -> Participant:
        member_id = party.member_id
        return _make_participant(
            party,
            _took(self.started_ms, self.joined_ms.get(member_id)),
            _took(self.join_ended_ms, self.synced_ms.get(member_id)),
            self.had.get(member_id, b""),
            got.get(member_id, b""),
        )


_make_participant: Final = maker(Participant)
"""Every rebalance makes as many as there are members."""


def _took(start: Millis | None, end: Millis | None) -> Millis | None:
    return None if start is None or end is None else Millis(end - start)
