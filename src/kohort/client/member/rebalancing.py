"""The way through a rebalance, step by step: give up, join, sync, hear of it.

Each step looks at where the member is and does what can be done now; nothing is remembered that
could be out of date when it is needed.
"""

from kohort.client.assignors import RebalanceProtocol
from kohort.client.member.coordinator_search import CoordinatorSearch
from kohort.client.member.effects import Call, Change
from kohort.client.member.handover import Handover
from kohort.client.member.joining import Joining
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.program import Program
from kohort.client.rebalances import Ending
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis


class Rebalancing:
    def __init__(
        self,
        membership: Membership,
        program: Program,
        search: CoordinatorSearch,
        joining: Joining,
        handover: Handover,
        *,
        protocol: RebalanceProtocol,
    ) -> None:
        self._protocol = protocol
        self._membership = membership
        self._program = program
        self._search = search
        self._joining = joining
        self._handover = handover

    def advance(self, now: Millis) -> None:
        """As far as it goes without anybody's help."""
        before = None
        while before is not self._membership.state:
            before = self._membership.state
            match before:
                case MemberState.UNJOINED | MemberState.STABLE:
                    self._begin(now)
                case MemberState.PREPARING:
                    self._prepare(now)
                case MemberState.SYNCING:
                    self._joining.lead(now)
                case MemberState.ASSIGNING:
                    self._assign(now)
                case MemberState.JOINING | MemberState.LEAVING | MemberState.ENDED:
                    pass

    def _begin(self, now: Millis) -> None:
        membership = self._membership
        if membership.topics is None or not membership.is_wanted:
            return
        if membership.state is MemberState.STABLE and membership.rejoin is None:
            if self._joining.is_outdated:
                membership.request_rejoin("cached metadata has changed", now)
            elif membership.joined_topics != membership.topics:
                membership.request_rejoin("subscription has changed", now)
        if membership.rejoin is not None:
            self._program.stop_waiting()
            membership.begin()

    def _prepare(self, now: Millis) -> None:
        membership = self._membership
        if membership.retry_at is not None and now >= membership.retry_at:
            membership.retry_at = None
        leaving, is_lost = self._leaving()
        if leaving:
            if is_lost or self._handover.commit(leaving, now):
                self._handover.give_up(Change.LOST if is_lost else Change.REVOKED, leaving, now)
            return
        self._handover.cancel()
        self._program.stop_waiting()
        is_free = self._program.call is None and membership.retry_at is None
        if is_free and self._search.coordinator is not None:
            self._joining.join(now)

    def _leaving(self) -> tuple[frozenset[TopicPartition], bool]:
        """What must go before it joins, and whether it is gone already."""
        membership = self._membership
        if not membership.standing.is_valid:
            return membership.held, True
        if self._protocol is RebalanceProtocol.EAGER:
            return membership.held, False
        # DEVIATION: Kafka's client joins in poll only, and commits what it has before it joins.
        # Here a cooperative member with nothing to give up joins at once, and commits what it must
        # give up just before that goes: the group waits less, and less is read twice.
        wanted = membership.topics or frozenset()
        return frozenset(at for at in membership.held if at.topic not in wanted), False

    def _assign(self, now: Millis) -> None:
        membership = self._membership
        assert membership.assignment is not None
        if membership.rejoin is not None and self._program.is_away:
            # DEVIATION: Kafka's client joins in poll only, and lets the group wait for it. Here an
            # assignment that is out of date before the program polls is never heard of.
            membership.restart(membership.rejoin.reason, now)
            return
        revoked = membership.held - membership.assignment
        if revoked:
            if self._handover.commit(revoked, now):
                self._handover.give_up(Change.REVOKED, revoked, now)
        elif self._program.is_ready(now):
            added = membership.assignment - membership.held
            membership.held = membership.assignment
            if membership.draft is not None:
                membership.draft.added = added
            self._program.tell(Change.ASSIGNED, added, now)

    def hear_back(self, call: Call, now: Millis) -> None:
        """The listener has heard of a change."""
        membership, draft = self._membership, self._membership.draft
        match call.change:
            case Change.REVOKED:
                membership.held -= call.partitions
                if draft is not None:
                    draft.revoked |= call.partitions
                if membership.state is MemberState.ASSIGNING:
                    membership.request_rejoin("need to revoke partitions and re-join", now)
            case Change.LOST:
                membership.held -= call.partitions
                if draft is not None:
                    draft.lost |= call.partitions
            case Change.ASSIGNED:
                # Unless it was reset meanwhile, and this is of the past.
                if membership.state is MemberState.ASSIGNING:
                    membership.assignment = None
                    membership.end(Ending.STABLE, now)
                    membership.state = MemberState.STABLE
