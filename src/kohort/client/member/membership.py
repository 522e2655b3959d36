"""The state that the parts of a member share: generation, owned partitions, rebalance in progress.

Its methods keep the parts consistent. It sends no requests.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kohort.assignors import NO_GENERATION
from kohort.client.errors import ConsumerError
from kohort.client.member.effects import MemberFailed, RebalanceCompleted
from kohort.client.member.member_events import RequestId
from kohort.client.member.outbox import Outbox
from kohort.client.rebalances import ConsumerRebalanceResult, Rebalance
from kohort.types import Generation, MemberId, Millis, Topic, TopicPartition, value


@dataclass(slots=True)
class CurrentRebalance:
    """Collects the facts of the rebalance in progress."""

    started_at: Millis
    reason: str
    member_id: MemberId
    generation: Generation = Generation(-1)
    protocol: str | None = None
    is_leader: bool = False
    members: int | None = None
    join_ms: int = 0
    sync_ms: int = 0
    listener_ms: int = 0
    poll_wait_ms: int = 0
    added: frozenset[TopicPartition] = frozenset()
    revoked: frozenset[TopicPartition] = frozenset()
    lost: frozenset[TopicPartition] = frozenset()

    def end(
        self, result: ConsumerRebalanceResult, owned: frozenset[TopicPartition], now: Millis
    ) -> Rebalance:
        return Rebalance(
            started_at=self.started_at,
            ended_at=now,
            reason=self.reason,
            result=result,
            generation=self.generation,
            member_id=self.member_id,
            protocol=self.protocol,
            is_leader=self.is_leader,
            members=self.members,
            join_ms=Millis(self.join_ms),
            sync_ms=Millis(self.sync_ms),
            listener_ms=Millis(self.listener_ms),
            poll_wait_ms=Millis(self.poll_wait_ms),
            assigned=owned,
            added=self.added,
            revoked=self.revoked,
            lost=self.lost,
        )


NO_MEMBER: Final = MemberId("")
REASON_LENGTH_MAX: Final = 255
"""Brokers reject longer reasons (KIP-800)."""


class MemberState(StrEnum):
    UNJOINED = "unjoined"
    """Not in the group."""
    PREPARING = "preparing"
    """Before JoinGroup: partitions are revoked, and the coordinator is searched."""
    JOINING = "joining"
    """JoinGroup is in flight. Kafka's client: PREPARING_REBALANCE."""
    SYNCING = "syncing"
    """SyncGroup is due or in flight. Kafka's client: COMPLETING_REBALANCE."""
    ASSIGNING = "assigning"
    """Assigned; the listener has not returned yet. Kafka's client: STABLE."""
    STABLE = "stable"
    LEAVING = "leaving"
    """unsubscribe() or close() is in progress."""
    ENDED = "ended"


@value
class MemberGeneration:
    """The member as the coordinator knows it (Kafka: AbstractCoordinator.Generation)."""

    generation_id: Generation = NO_GENERATION
    member_id: MemberId = NO_MEMBER
    protocol_name: str | None = None
    """The assignor that the group chose for this generation."""

    @property
    def is_valid(self) -> bool:
        return self.generation_id != NO_GENERATION and self.member_id != NO_MEMBER


@value
class Rejoin:
    """A pending request to join the group, for the first time or again."""

    reason: str
    since: Millis


_WITH_HEARTBEAT: Final = frozenset(
    {
        # DEVIATION: Kafka's client stops heartbeats when it closes. Here they continue, so that a
        # slow listener does not lose its partitions during close().
        MemberState.LEAVING,
        MemberState.PREPARING,
        MemberState.SYNCING,
        MemberState.ASSIGNING,
        MemberState.STABLE,
    }
)


class Membership:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.state = MemberState.UNJOINED
        self.generation = MemberGeneration()
        self.topics: frozenset[Topic] | None = None
        """The subscribed topics; None without a subscription."""
        self.joined_topics: frozenset[Topic] | None = None
        """The subscribed topics of the last JoinGroup."""
        self.owned: frozenset[TopicPartition] = frozenset()
        self.assignment: frozenset[TopicPartition] | None = None
        """Set from the SyncGroup response until the listener has returned."""
        self.rejoin: Rejoin | None = None
        self.has_polled = False
        """Whether the application has polled since it subscribed or got the last error."""
        self.in_flight: RequestId | None = None
        """The JoinGroup or SyncGroup request in flight."""
        self.is_rejoining = False
        """Whether a JoinGroup was sent, so that the known generation may have ended."""
        self.retry_at: Millis | None = None
        """Earliest time of the next JoinGroup."""
        self.current_rebalance: CurrentRebalance | None = None

    @property
    def is_joined(self) -> bool:
        """Whether the coordinator expects heartbeats."""
        is_in = self.generation.is_valid and not self.is_rejoining
        return is_in and self.state in _WITH_HEARTBEAT

    @property
    def is_rebalancing(self) -> bool:
        """As in Kafka's client: from the JoinGroup request to the SyncGroup response."""
        return self.is_rejoining or self.state is MemberState.SYNCING

    def on_poll(self, now: Millis) -> None:
        """A rejoin that waited for this poll starts now."""
        if not self.has_polled and self.rejoin is not None:
            self.rejoin = Rejoin(reason=self.rejoin.reason, since=now)
        self.has_polled = True

    def request_rejoin(self, reason: str, now: Millis) -> None:
        since = now if self.rejoin is None else self.rejoin.since
        self.rejoin = Rejoin(reason=reason[:REASON_LENGTH_MAX], since=since)

    def start_rebalance(self) -> None:
        """Start the requested rebalance."""
        assert self.rejoin is not None
        self.current_rebalance = CurrentRebalance(
            started_at=self.rejoin.since,
            reason=self.rejoin.reason,
            member_id=self.generation.member_id,
        )
        self.retry_at = None
        self.state = MemberState.PREPARING

    def end_rebalance(self, result: ConsumerRebalanceResult, now: Millis) -> None:
        """Report the rebalance in progress, if any, as ended."""
        if self.current_rebalance is not None:
            self._outbox.add(
                RebalanceCompleted(rebalance=self.current_rebalance.end(result, self.owned, now))
            )
            self.current_rebalance = None

    def cancel_requests(self) -> None:
        """Ignore the response of the JoinGroup or SyncGroup in flight."""
        self._outbox.cancel(self.in_flight)
        self.in_flight = None
        self.assignment = None

    def reset(self, reason: str, now: Millis, *, keeps_id: bool = False) -> None:
        """The generation has ended: owned partitions are lost, and the member must rejoin."""
        self.cancel_requests()
        member_id = self.generation.member_id if keeps_id else NO_MEMBER
        self.generation = MemberGeneration(member_id=member_id)
        self.is_rejoining = False
        if self.state not in (MemberState.LEAVING, MemberState.ENDED):
            self.end_rebalance(ConsumerRebalanceResult.SUPERSEDED, now)
            self.state = MemberState.UNJOINED
            self.rejoin = None
            self.request_rejoin(reason, now)

    def fence(self, error: ConsumerError, reason: str, now: Millis) -> None:
        """Another process uses the same instance id. The next poll raises; a later one rejoins."""
        self.end_rebalance(ConsumerRebalanceResult.FAILED, now)
        self.reset(reason, now)
        self.has_polled = False
        self._outbox.add(MemberFailed(error=error))

    def restart(self, reason: str, now: Millis) -> None:
        """The group has started another rebalance: rejoin and keep the owned partitions."""
        self.cancel_requests()
        self.end_rebalance(ConsumerRebalanceResult.SUPERSEDED, now)
        self.state = MemberState.UNJOINED
        self.rejoin = None
        self.request_rejoin(reason, now)

    def retry(self, reason: str, retry_at: Millis | None, now: Millis) -> None:
        """Retry the same rebalance."""
        self.cancel_requests()
        self.request_rejoin(reason, now)
        self.is_rejoining = True
        self.retry_at = retry_at
        self.state = MemberState.PREPARING

    def forget(self, topics: frozenset[Topic] | None) -> None:
        """Return to the initial state, with a new subscription."""
        self.generation = MemberGeneration()
        self.is_rejoining = False
        self.state = MemberState.UNJOINED
        self.rejoin = None
        self.joined_topics = None
        self.has_polled = False
        self.topics = topics

    def fail(self, error: ConsumerError, now: Millis) -> None:
        """The next poll raises the error; a later one tries to join again."""
        self.cancel_requests()
        self.end_rebalance(ConsumerRebalanceResult.FAILED, now)
        self._outbox.add(MemberFailed(error=error))
        self.state = MemberState.UNJOINED
        self.has_polled = False
        self.rejoin = None
        self.request_rejoin(f"rebalance failed due to {type(error).__name__}", now)
