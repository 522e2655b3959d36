"""What a group goes through, seen from outside: from what its members do and what they are told.

It knows the rules of the group protocol in its own words and never looks at the coordinator or its
notes, so that truth and notes are two testimonies; a test compares them.
"""

from dataclasses import dataclass, field
from enum import Enum

from kohort.coordinator.commands import Protocol
from kohort.coordinator.notes import Ending, Party, Trigger
from kohort.coordinator.replies import Joined
from kohort.corpus.timeline import FORESEEN, Timeline
from kohort.corpus.truth import Rebalance, Truth
from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis


class Phase(Enum):
    EMPTY = "empty"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


@dataclass(slots=True)
class Standing:
    """A member, as the witness knows it."""

    party: Party
    protocols: tuple[Protocol, ...]
    session_ms: int
    rebalance_ms: int
    heard_ms: Millis
    """When its session last began anew."""
    is_parked: bool = False
    """It waits for an answer, and need not be heard of meanwhile."""
    is_silent: bool = False
    """Its process is gone or frozen; sooner or later its session ends."""
    has_synced: bool = False


@dataclass(slots=True)
class Opened:
    """A rebalance that goes on."""

    trigger: Trigger
    culprit: Party | None
    generation_before: Generation
    started_ms: Millis


@dataclass(slots=True)
class Witness:
    group_id: GroupId
    timeline: Timeline
    truth: Truth
    phase: Phase = Phase.EMPTY
    generation: Generation = Generation(0)
    leader: MemberId | None = None
    standings: dict[MemberId, Standing] = field(default_factory=dict)
    opened: Opened | None = None

    # What members do, told before the coordinator hears of it

    def joins(self, standing: Standing, *, is_new: bool) -> None:
        """A member asks to join; one that is not new believes that it is in the group."""
        party = standing.party
        known = self.standings.get(party.member_id)
        before = known or self._find_instance(party.instance_id)
        standing.is_parked = True
        if known is not None:
            standing.heard_ms = known.heard_ms
            self.standings[party.member_id] = standing
            self._rejoins(party, is_changed=known.protocols != standing.protocols)
        elif before is not None and is_new:
            standing.has_synced = before.has_synced
            self._returns(before, standing)
        elif is_new:
            self.standings[party.member_id] = standing
            self._begin(Trigger.MEMBER_JOINED, party)

    def _rejoins(self, party: Party, *, is_changed: bool) -> None:
        if self.phase is Phase.STABLE and party.member_id == self.leader:
            self._begin(Trigger.LEADER_REJOINED, party)
        elif is_changed:
            self._begin(Trigger.SUBSCRIPTION_CHANGED, party)

    def _returns(self, before: Standing, standing: Standing) -> None:
        """A static member has begun anew, and takes its own place."""
        old_id, new_id = before.party.member_id, standing.party.member_id
        chosen_before = choose_protocol(list(self.standings.values()))
        self.standings = {
            (new_id if each == old_id else each): (standing if each == old_id else other)
            for each, other in self.standings.items()
        }
        if self.leader == old_id:
            self.leader = new_id
        if self.phase is Phase.SYNCING:
            self._begin(Trigger.INSTANCE_RESTARTED, standing.party)
        elif choose_protocol(list(self.standings.values())) != chosen_before:
            self._begin(Trigger.PROTOCOL_CHANGED, standing.party)

    def syncs(self, member_id: MemberId) -> None:
        standing = self.standings.get(member_id)
        if standing is not None:
            standing.is_parked = self.phase is Phase.SYNCING
            standing.has_synced = True

    def leaves(self, member_id: MemberId) -> None:
        self._goes(member_id, Trigger.MEMBER_LEFT)

    def is_removed(self, instance_id: InstanceId) -> None:
        """An administrator removes a static member."""
        standing = self._find_instance(instance_id)
        if standing is not None:
            self._goes(standing.party.member_id, Trigger.MEMBER_REMOVED)

    def falls_silent(self, member_id: MemberId) -> None:
        """Nothing will be heard of it any more; its session ends in its time."""
        standing = self.standings.get(member_id)
        if standing is not None:
            standing.is_silent = True
            self._foresee_expiry(standing)

    def speaks_again(self, member_id: MemberId) -> None:
        if member_id in self.standings:
            self.standings[member_id].is_silent = False

    # What members are told

    def heard(self, member_id: MemberId) -> None:
        """Its session begins anew: its heartbeat or its commit was taken, or it was answered."""
        standing = self.standings.get(member_id)
        if standing is not None:
            standing.heard_ms = self.timeline.now
            standing.is_parked = False
            if standing.is_silent:
                self._foresee_expiry(standing)

    def sync_is_refused(self, member_id: MemberId) -> None:
        """The session of whoever waited for its share begins anew."""
        if member_id in self.standings and self.standings[member_id].is_parked:
            self.heard(member_id)

    def joined(self, reply: Joined) -> None:
        """A join is answered. The first answer of a generation ends the join phase."""
        standing = self.standings.get(reply.member_id)
        if reply.generation != self.generation:
            self.generation = reply.generation
            self.phase = Phase.SYNCING
        elif standing is not None:
            self.heard(reply.member_id)
        self.leader = reply.leader
        if reply.members and self.phase is Phase.SYNCING:
            self._call_roll([each.member_id for each in reply.members])

    def _call_roll(self, member_ids: list[MemberId]) -> None:
        """The leader is told who is in; whoever is not named was left out."""
        self.standings = {each: self.standings[each] for each in member_ids}
        for standing in self.standings.values():
            standing.has_synced = False
            self.heard(standing.party.member_id)
        self._foresee_late_syncs()

    def synced(self) -> None:
        """An assignment was handed out: the first of a generation means that it is kept."""
        if self.phase is Phase.SYNCING:
            self.phase = Phase.STABLE
            for standing in self.standings.values():
                if standing.is_parked:
                    self.heard(standing.party.member_id)
            self._close(Ending.STABLE)

    def is_turned_away(self, member_id: MemberId) -> None:
        """Its join was refused: it is not in the group, and has begun nothing."""
        self.standings.pop(member_id, None)
        opened = self.opened
        culprit = None if opened is None else opened.culprit
        is_first = opened is not None and opened.started_ms == self.timeline.now
        if is_first and culprit is not None and culprit.member_id == member_id:
            self.opened = None
            self.phase = Phase.STABLE if self.standings else Phase.EMPTY

    # What the script does to the group as a whole

    def assignment_is_refused(self) -> None:
        culprit = None if self.leader is None else self.standings[self.leader].party
        self._begin(Trigger.ASSIGNMENT_NOT_STORED, culprit)

    def is_forgotten(self) -> None:
        """Empty for so long that nothing of it is left: it begins anew."""
        assert self.phase is Phase.EMPTY, "a group with members is not forgotten"
        self.generation = Generation(0)

    def coordinator_restarts(self, group_max_size: int) -> None:
        """Only in a quiet moment: every session begins anew."""
        assert self.phase in (Phase.EMPTY, Phase.STABLE), "a rebalance would be forgotten"
        for member_id in self.standings:
            self.heard(member_id)
        if len(self.standings) > group_max_size:
            self._begin(Trigger.OVER_CAPACITY, None)

    def end(self) -> None:
        """The history is over; what is still going on has no end."""
        if self.opened is not None:
            self.truth.rebalances.append(self._told(self.opened))
            self.opened = None

    # What comes with time

    def _foresee_expiry(self, standing: Standing) -> None:
        """Look again when its session is over. Whenever that begins anew, so does this."""

        def look() -> None:
            is_same = self.standings.get(standing.party.member_id) is standing
            is_over = standing.heard_ms + standing.session_ms <= self.timeline.now
            if is_same and is_over and standing.is_silent and not standing.is_parked:
                self._goes(standing.party.member_id, Trigger.SESSION_EXPIRED)

        self.timeline.at(standing.heard_ms + standing.session_ms, look, FORESEEN)

    def _foresee_late_syncs(self) -> None:
        generation = self.generation
        wait_ms = max(each.rebalance_ms for each in self.standings.values())

        def look() -> None:
            late = [each for each in self.standings.values() if not each.has_synced]
            if self.generation != generation or not late or self.phase is Phase.JOINING:
                return
            for standing in late:
                del self.standings[standing.party.member_id]
            self._begin(Trigger.SYNC_EXPIRED, late[0].party)
            self._look_whether_empty()

        self.timeline.at(self.timeline.now + wait_ms, look, FORESEEN)

    # The course of a rebalance

    def _goes(self, member_id: MemberId, trigger: Trigger) -> None:
        standing = self.standings.pop(member_id, None)
        if standing is not None:
            if self.leader == member_id:
                self.leader = next(iter(self.standings), None)
            self._begin(trigger, standing.party)
            self._look_whether_empty()

    def _begin(self, trigger: Trigger, culprit: Party | None) -> None:
        """Whatever happens in a join phase belongs to the rebalance that goes on already."""
        if self.phase is Phase.JOINING:
            return
        if self.phase is Phase.SYNCING:
            self._close(Ending.INTERRUPTED)
        self.phase = Phase.JOINING
        self.opened = Opened(trigger, culprit, self.generation, self.timeline.now)

    def _look_whether_empty(self) -> None:
        if not self.standings:
            self.generation = Generation(self.generation + 1)
            self.phase = Phase.EMPTY
            self._close(Ending.EMPTY)

    def _close(self, ending: Ending) -> None:
        if self.opened is not None:
            self.truth.rebalances.append(self._told(self.opened, ending))
        self.opened = None

    def _told(self, opened: Opened, ending: Ending | None = None) -> Rebalance:
        return Rebalance(
            group_id=self.group_id,
            trigger=opened.trigger,
            culprit=opened.culprit,
            generation_before=opened.generation_before,
            generation=None if ending is None else self.generation,
            started_ms=opened.started_ms,
            ended_ms=None if ending is None else self.timeline.now,
            ending=ending,
        )

    def _find_instance(self, instance_id: InstanceId | None) -> Standing | None:
        if instance_id is None:
            return None
        for standing in self.standings.values():
            if standing.party.instance_id == instance_id:
                return standing
        return None


def choose_protocol(standings: list[Standing]) -> str | None:
    """The protocol everyone offers that most prefer; of two, the first member's choice."""
    offers = [[protocol.name for protocol in each.protocols] for each in standings]
    shared = [name for name in offers[0] if all(name in each for each in offers)]
    votes = dict.fromkeys(shared, 0)
    for each in offers:
        preferred = next((name for name in each if name in votes), None)
        if preferred is not None:
            votes[preferred] += 1
    return max(shared, key=votes.__getitem__, default=None)
