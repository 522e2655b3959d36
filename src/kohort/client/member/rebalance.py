"""The steps of a rebalance: revoke partitions, JoinGroup, SyncGroup, call the listener.

Each step is derived from the member's current state, so no stored plan can be out of date.
"""

from kohort.assignors import RebalanceProtocol
from kohort.client.member.effects import AssignmentChange, CallListener
from kohort.client.member.find_coordinator import CoordinatorSearch
from kohort.client.member.join import Joiner
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.poll_tracker import PollTracker
from kohort.client.member.revocation import Revocation
from kohort.client.rebalances import ConsumerRebalanceResult
from kohort.types import Millis, TopicPartition


class Rebalancer:
    def __init__(
        self,
        membership: Membership,
        poll_tracker: PollTracker,
        search: CoordinatorSearch,
        joiner: Joiner,
        revocation: Revocation,
        *,
        protocol: RebalanceProtocol,
    ) -> None:
        self._protocol = protocol
        self._membership = membership
        self._poll_tracker = poll_tracker
        self._search = search
        self._joiner = joiner
        self._revocation = revocation

    def advance(self, now: Millis) -> None:
        """Take every step that needs no response and no listener."""
        before = None
        while before is not self._membership.state:
            before = self._membership.state
            match before:
                case MemberState.UNJOINED | MemberState.STABLE:
                    self._start(now)
                case MemberState.PREPARING:
                    self._prepare(now)
                case MemberState.SYNCING:
                    self._joiner.assign_as_leader(now)
                case MemberState.ASSIGNING:
                    self._assign(now)
                case MemberState.JOINING | MemberState.LEAVING | MemberState.ENDED:
                    pass

    def _start(self, now: Millis) -> None:
        membership = self._membership
        if membership.topics is None or not membership.has_polled:
            return
        if membership.state is MemberState.STABLE and membership.rejoin is None:
            if self._joiner.is_outdated:
                membership.request_rejoin("cached metadata has changed", now)
            elif membership.joined_topics != membership.topics:
                membership.request_rejoin("subscription has changed", now)
        if membership.rejoin is not None:
            self._poll_tracker.stop_waiting()
            membership.start_rebalance()

    def _prepare(self, now: Millis) -> None:
        membership = self._membership
        if membership.retry_at is not None and now >= membership.retry_at:
            membership.retry_at = None
        revoked, is_lost = self._to_revoke()
        if revoked:
            if is_lost or self._revocation.commit(revoked, now):
                change = AssignmentChange.LOST if is_lost else AssignmentChange.REVOKED
                self._revocation.call_listener(change, revoked, now)
            return
        self._revocation.cancel()
        self._poll_tracker.stop_waiting()
        is_free = self._poll_tracker.call is None and membership.retry_at is None
        if is_free and self._search.coordinator is not None:
            self._joiner.join(now)

    def _to_revoke(self) -> tuple[frozenset[TopicPartition], bool]:
        """The partitions to revoke before JoinGroup, and whether they are lost already."""
        membership = self._membership
        if not membership.generation.is_valid:
            return membership.owned, True
        if self._protocol is RebalanceProtocol.EAGER:
            return membership.owned, False
        # DEVIATION: Kafka's client joins only in poll and commits before it joins. Here a
        # cooperative member that revokes nothing joins at once, and commits partitions just before
        # they are revoked. The group waits less, and fewer records are read twice.
        wanted = membership.topics or frozenset()
        return frozenset(at for at in membership.owned if at.topic not in wanted), False

    def _assign(self, now: Millis) -> None:
        membership = self._membership
        assert membership.assignment is not None
        if membership.rejoin is not None and self._poll_tracker.is_busy:
            # DEVIATION: Kafka's client joins only in poll, and the group waits for it. Here the
            # listener never gets an assignment that is outdated before the application polls.
            membership.restart(membership.rejoin.reason, now)
            return
        revoked = membership.owned - membership.assignment
        if revoked:
            if self._revocation.commit(revoked, now):
                self._revocation.call_listener(AssignmentChange.REVOKED, revoked, now)
        elif self._poll_tracker.can_call_listener(now):
            added = membership.assignment - membership.owned
            membership.owned = membership.assignment
            if membership.current_rebalance is not None:
                membership.current_rebalance.added = added
            self._poll_tracker.call_listener(AssignmentChange.ASSIGNED, added, now)

    def on_listener_returned(self, call: CallListener, now: Millis) -> None:
        """Record the change that the listener was called for."""
        membership, current_rebalance = self._membership, self._membership.current_rebalance
        match call.change:
            case AssignmentChange.REVOKED:
                membership.owned -= call.partitions
                if current_rebalance is not None:
                    current_rebalance.revoked |= call.partitions
                if membership.state is MemberState.ASSIGNING:
                    membership.request_rejoin("need to revoke partitions and re-join", now)
            case AssignmentChange.LOST:
                membership.owned -= call.partitions
                if current_rebalance is not None:
                    current_rebalance.lost |= call.partitions
            case AssignmentChange.ASSIGNED:
                # The member may have been reset while the listener ran.
                if membership.state is MemberState.ASSIGNING:
                    membership.assignment = None
                    membership.end_rebalance(ConsumerRebalanceResult.STABLE, now)
                    membership.state = MemberState.STABLE
