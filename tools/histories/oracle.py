"""The rebalances of a group, derived from the requests and responses of its members.

The oracle implements the rules of the group protocol a second time. It never reads the coordinator
or its events, so that labels and events are independent; a test compares them.
"""

from dataclasses import dataclass, field
from enum import Enum

from kohort.coordinator.commands import Protocol
from kohort.coordinator.events import MemberInfo, RebalanceResult, Trigger
from kohort.coordinator.replies import Joined
from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis
from kohort.virtual_time.scheduler import EARLY, Scheduler
from tools.histories.labels import Labels, RebalanceLabel


class GroupPhase(Enum):
    EMPTY = "empty"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


@dataclass(slots=True)
class OracleMember:
    identity: MemberInfo
    protocols: tuple[Protocol, ...]
    session_ms: int
    rebalance_ms: int
    last_contact_ms: Millis
    """When its session timer was last reset."""
    awaits_response: bool = False
    """While it waits for a response, its session does not expire."""
    is_silent: bool = False
    """Its process ended or is frozen, so its session will expire."""
    has_synced: bool = False


@dataclass(slots=True)
class OpenRebalance:
    """A rebalance in progress."""

    trigger: Trigger
    initiator: MemberInfo | None
    generation_before: Generation
    started_ms: Millis


@dataclass(slots=True)
class RebalanceOracle:
    group_id: GroupId
    scheduler: Scheduler
    labels: Labels
    phase: GroupPhase = GroupPhase.EMPTY
    generation: Generation = Generation(0)
    leader: MemberId | None = None
    members: dict[MemberId, OracleMember] = field(default_factory=dict)
    open_rebalance: OpenRebalance | None = None

    # Requests of members, before the coordinator receives them

    def on_join_request(self, member: OracleMember, *, is_new: bool) -> None:
        """A member that is not new assumes that it is in the group."""
        identity = member.identity
        known = self.members.get(identity.member_id)
        before = known or self._find_instance(identity.instance_id)
        member.awaits_response = True
        if known is not None:
            member.last_contact_ms = known.last_contact_ms
            self.members[identity.member_id] = member
            self._rejoin(identity, is_changed=known.protocols != member.protocols)
        elif before is not None and is_new:
            member.has_synced = before.has_synced
            self._replace_instance(before, member)
        elif is_new:
            self.members[identity.member_id] = member
            self._begin(Trigger.MEMBER_JOINED, identity)

    def _rejoin(self, identity: MemberInfo, *, is_changed: bool) -> None:
        if self.phase is GroupPhase.STABLE and identity.member_id == self.leader:
            self._begin(Trigger.LEADER_REJOINED, identity)
        elif is_changed:
            self._begin(Trigger.SUBSCRIPTION_CHANGED, identity)

    def _replace_instance(self, before: OracleMember, member: OracleMember) -> None:
        """A static member has restarted: its new member id replaces the old one."""
        old_id, new_id = before.identity.member_id, member.identity.member_id
        chosen_before = choose_protocol(list(self.members.values()))
        self.members = {
            (new_id if each == old_id else each): (member if each == old_id else other)
            for each, other in self.members.items()
        }
        if self.leader == old_id:
            self.leader = new_id
        if self.phase is GroupPhase.SYNCING:
            self._begin(Trigger.INSTANCE_RESTARTED, member.identity)
        elif choose_protocol(list(self.members.values())) != chosen_before:
            self._begin(Trigger.PROTOCOL_CHANGED, member.identity)

    def on_sync_request(self, member_id: MemberId) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.awaits_response = self.phase is GroupPhase.SYNCING
            member.has_synced = True

    def on_leave_request(self, member_id: MemberId) -> None:
        self._remove(member_id, Trigger.MEMBER_LEFT)

    def on_removal_by_admin(self, instance_id: InstanceId) -> None:
        member = self._find_instance(instance_id)
        if member is not None:
            self._remove(member.identity.member_id, Trigger.MEMBER_REMOVED)

    def on_process_silent(self, member_id: MemberId) -> None:
        """The process sends nothing from now on, so its session will expire."""
        member = self.members.get(member_id)
        if member is not None:
            member.is_silent = True
            self._schedule_expiry(member)

    def on_process_resumed(self, member_id: MemberId) -> None:
        if member_id in self.members:
            self.members[member_id].is_silent = False

    # Responses to members

    def on_contact(self, member_id: MemberId) -> None:
        """A heartbeat or commit succeeded or a response was sent: the session timer restarts."""
        member = self.members.get(member_id)
        if member is not None:
            member.last_contact_ms = self.scheduler.now_ms
            member.awaits_response = False
            if member.is_silent:
                self._schedule_expiry(member)

    def on_sync_error(self, member_id: MemberId) -> None:
        """The error response restarts the session timer of a member that was waiting."""
        if member_id in self.members and self.members[member_id].awaits_response:
            self.on_contact(member_id)

    def on_join_response(self, reply: Joined) -> None:
        """The first join response of a generation ends the join phase."""
        member = self.members.get(reply.member_id)
        if reply.generation != self.generation:
            self.generation = reply.generation
            self.phase = GroupPhase.SYNCING
        elif member is not None:
            self.on_contact(reply.member_id)
        self.leader = reply.leader
        if reply.members and self.phase is GroupPhase.SYNCING:
            self._set_members([each.member_id for each in reply.members])

    def _set_members(self, member_ids: list[MemberId]) -> None:
        """The leader's response lists all members; the coordinator removed the others."""
        self.members = {each: self.members[each] for each in member_ids}
        for member in self.members.values():
            member.has_synced = False
            self.on_contact(member.identity.member_id)
        self._schedule_sync_expiry()

    def on_sync_response(self) -> None:
        """The first assignment of a generation shows that the generation was stored."""
        if self.phase is GroupPhase.SYNCING:
            self.phase = GroupPhase.STABLE
            for member in self.members.values():
                if member.awaits_response:
                    self.on_contact(member.identity.member_id)
            self._close(RebalanceResult.STABLE)

    def on_join_error(self, member_id: MemberId) -> None:
        """The member is not in the group and has not started a rebalance."""
        self.members.pop(member_id, None)
        open_rebalance = self.open_rebalance
        initiator = None if open_rebalance is None else open_rebalance.initiator
        is_first = open_rebalance is not None and open_rebalance.started_ms == self.scheduler.now_ms
        if is_first and initiator is not None and initiator.member_id == member_id:
            self.open_rebalance = None
            self.phase = GroupPhase.STABLE if self.members else GroupPhase.EMPTY

    # Faults

    def on_assignment_append_failed(self) -> None:
        initiator = None if self.leader is None else self.members[self.leader].identity
        self._begin(Trigger.ASSIGNMENT_NOT_STORED, initiator)

    def on_group_expired(self) -> None:
        """All offsets of the empty group expired: it starts again with generation 0."""
        assert self.phase is GroupPhase.EMPTY, "a group with members does not expire"
        self.generation = Generation(0)

    def on_coordinator_restart(self, group_max_size: int) -> None:
        """All session timers restart. The script restarts only when no rebalance is running."""
        assert self.phase in (GroupPhase.EMPTY, GroupPhase.STABLE), "a rebalance would be lost"
        for member_id in self.members:
            self.on_contact(member_id)
        if len(self.members) > group_max_size:
            self._begin(Trigger.OVER_CAPACITY, None)

    def end(self) -> None:
        """The history is over; label the rebalance in progress, if there is one."""
        if self.open_rebalance is not None:
            self.labels.rebalances.append(self._label(self.open_rebalance))
            self.open_rebalance = None

    # Timeouts

    def _schedule_expiry(self, member: OracleMember) -> None:
        """Check at the end of the session; each contact schedules another check."""

        def check() -> None:
            is_same = self.members.get(member.identity.member_id) is member
            is_over = member.last_contact_ms + member.session_ms <= self.scheduler.now_ms
            if is_same and is_over and member.is_silent and not member.awaits_response:
                self._remove(member.identity.member_id, Trigger.SESSION_EXPIRED)

        self.scheduler.at(member.last_contact_ms + member.session_ms, check, EARLY)

    def _schedule_sync_expiry(self) -> None:
        generation = self.generation
        wait_ms = max(each.rebalance_ms for each in self.members.values())

        def check() -> None:
            late = [each for each in self.members.values() if not each.has_synced]
            if self.generation != generation or not late or self.phase is GroupPhase.JOINING:
                return
            for member in late:
                del self.members[member.identity.member_id]
            self._begin(Trigger.SYNC_EXPIRED, late[0].identity)
            self._check_empty()

        self.scheduler.at(self.scheduler.now_ms + wait_ms, check, EARLY)

    # Rebalances

    def _remove(self, member_id: MemberId, trigger: Trigger) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            if self.leader == member_id:
                self.leader = next(iter(self.members), None)
            self._begin(trigger, member.identity)
            self._check_empty()

    def _begin(self, trigger: Trigger, initiator: MemberInfo | None) -> None:
        """During a join phase nothing starts another rebalance."""
        if self.phase is GroupPhase.JOINING:
            return
        if self.phase is GroupPhase.SYNCING:
            self._close(RebalanceResult.INTERRUPTED)
        self.phase = GroupPhase.JOINING
        self.open_rebalance = OpenRebalance(
            trigger, initiator, self.generation, self.scheduler.now_ms
        )

    def _check_empty(self) -> None:
        if not self.members:
            self.generation = Generation(self.generation + 1)
            self.phase = GroupPhase.EMPTY
            self._close(RebalanceResult.EMPTY)

    def _close(self, ending: RebalanceResult) -> None:
        if self.open_rebalance is not None:
            self.labels.rebalances.append(self._label(self.open_rebalance, ending))
        self.open_rebalance = None

    def _label(
        self, open_rebalance: OpenRebalance, ending: RebalanceResult | None = None
    ) -> RebalanceLabel:
        return RebalanceLabel(
            group_id=self.group_id,
            trigger=open_rebalance.trigger,
            initiator=open_rebalance.initiator,
            generation_before=open_rebalance.generation_before,
            generation=None if ending is None else self.generation,
            started_ms=open_rebalance.started_ms,
            ended_ms=None if ending is None else self.scheduler.now_ms,
            ending=ending,
        )

    def _find_instance(self, instance_id: InstanceId | None) -> OracleMember | None:
        if instance_id is None:
            return None
        for member in self.members.values():
            if member.identity.instance_id == instance_id:
                return member
        return None


def choose_protocol(members: list[OracleMember]) -> str | None:
    """Of the protocols that all members support, the one with the most votes.

    On a tie, the first member's preference decides.
    """
    supported = [[protocol.name for protocol in each.protocols] for each in members]
    shared = [name for name in supported[0] if all(name in each for each in supported)]
    votes = dict.fromkeys(shared, 0)
    for each in supported:
        preferred = next((name for name in each if name in votes), None)
        if preferred is not None:
            votes[preferred] += 1
    return max(shared, key=votes.__getitem__, default=None)
