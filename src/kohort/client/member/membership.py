"""What a member is at this moment: its standing in the group, what it holds and what it is about.

The parts of a member share it. It changes itself only in ways that are right for all of them; it
sends nothing.
"""

from enum import StrEnum
from typing import Final

from kohort.client.assignors import NO_GENERATION
from kohort.client.errors import ConsumerError
from kohort.client.member.draft import RebalanceDraft
from kohort.client.member.effects import Failed, Told
from kohort.client.member.events import RequestNumber
from kohort.client.member.outbox import Outbox
from kohort.client.rebalances import Ending
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, MemberId, Millis, Topic, value

NO_MEMBER: Final = MemberId("")
REASON_LENGTH_MAX: Final = 255
"""Of what is told to a coordinator, which refuses more (KIP-800)."""


class MemberState(StrEnum):
    UNJOINED = "unjoined"
    """Not in the group, or not any more."""
    PREPARING = "preparing"
    """About to join: what must go is given up first, and the coordinator found."""
    JOINING = "joining"
    """JoinGroup is on its way. Kafka's client calls it PREPARING_REBALANCE."""
    SYNCING = "syncing"
    """In a new generation, whose assignment is awaited, or made. Kafka: COMPLETING_REBALANCE."""
    ASSIGNING = "assigning"
    """The assignment is there, and the listener has yet to hear of it. Kafka: STABLE."""
    STABLE = "stable"
    LEAVING = "leaving"
    """The program has unsubscribed or closed, and the last things are done."""
    ENDED = "ended"


@value
class Standing:
    """What the coordinator takes this member for."""

    generation: Generation = NO_GENERATION
    member_id: MemberId = NO_MEMBER
    protocol: str | None = None
    """The assignor that was chosen for this generation."""

    @property
    def is_valid(self) -> bool:
        return self.generation != NO_GENERATION and self.member_id != NO_MEMBER


@value
class Rejoin:
    """It must join (again)."""

    reason: str
    since: Millis


_WITH_HEARTBEAT: Final = frozenset(
    {
        # DEVIATION: Kafka's client sends no heartbeats once it closes. Here they go on, so that a
        # listener that takes its time to hear of the end does not lose its partitions meanwhile.
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
        self.standing = Standing()
        self.topics: frozenset[Topic] | None = None
        """What the program wants; None while it does not take part in a group."""
        self.joined_topics: frozenset[Topic] | None = None
        """What was wanted when it joined."""
        self.held: frozenset[TopicPartition] = frozenset()
        self.assignment: frozenset[TopicPartition] | None = None
        """What the last SyncGroup brought, while the listener has yet to hear of it."""
        self.rejoin: Rejoin | None = None
        self.is_wanted = False
        """Whether the program has polled since it subscribed, or last heard bad news."""
        self.attempt: RequestNumber | None = None
        """The JoinGroup or SyncGroup that is on its way; any other answer is of the past."""
        self.is_between = False
        """It has asked to join, so the generation it knows of may be over: no heartbeat tells."""
        self.retry_at: Millis | None = None
        """Not to join before."""
        self.draft: RebalanceDraft | None = None

    @property
    def is_joined(self) -> bool:
        """Whether the coordinator expects heartbeats."""
        is_in = self.standing.is_valid and not self.is_between
        return is_in and self.state in _WITH_HEARTBEAT

    @property
    def is_rebalancing(self) -> bool:
        """As Kafka's client has it: between JoinGroup and the answer to SyncGroup."""
        return self.is_between or self.state is MemberState.SYNCING

    def want(self, now: Millis) -> None:
        """The program polls: what had to wait for that begins now."""
        if not self.is_wanted and self.rejoin is not None:
            self.rejoin = Rejoin(reason=self.rejoin.reason, since=now)
        self.is_wanted = True

    def request_rejoin(self, reason: str, now: Millis) -> None:
        since = now if self.rejoin is None else self.rejoin.since
        self.rejoin = Rejoin(reason=reason[:REASON_LENGTH_MAX], since=since)

    def begin(self) -> None:
        """The rebalance that was requested begins."""
        assert self.rejoin is not None
        self.draft = RebalanceDraft(
            began_at=self.rejoin.since,
            reason=self.rejoin.reason,
            member_id=self.standing.member_id,
        )
        self.retry_at = None
        self.state = MemberState.PREPARING

    def end(self, ending: Ending, now: Millis) -> None:
        """The rebalance that is under way, if one is, has ended."""
        if self.draft is not None:
            self._outbox.say(Told(rebalance=self.draft.end(ending, self.held, now)))
            self.draft = None

    def abandon(self) -> None:
        """Whatever JoinGroup or SyncGroup is answered with, it is of no interest any more."""
        self._outbox.forget(self.attempt)
        self.attempt = None
        self.assignment = None

    def reset(self, reason: str, now: Millis, *, keeps_id: bool = False) -> None:
        """The generation is over for this member; what it holds is lost, and it must join anew."""
        self.abandon()
        member_id = self.standing.member_id if keeps_id else NO_MEMBER
        self.standing = Standing(member_id=member_id)
        self.is_between = False
        if self.state not in (MemberState.LEAVING, MemberState.ENDED):
            self.end(Ending.OVERTAKEN, now)
            self.state = MemberState.UNJOINED
            self.rejoin = None
            self.request_rejoin(reason, now)

    def fence(self, error: ConsumerError, reason: str, now: Millis) -> None:
        """Another took its place; the program hears of it, and if it polls on takes it back."""
        self.end(Ending.FAILED, now)
        self.reset(reason, now)
        self.is_wanted = False
        self._outbox.say(Failed(error=error))

    def restart(self, reason: str, now: Millis) -> None:
        """The group has begun another rebalance; the member keeps what it has, and joins again."""
        self.abandon()
        self.end(Ending.OVERTAKEN, now)
        self.state = MemberState.UNJOINED
        self.rejoin = None
        self.request_rejoin(reason, now)

    def retry(self, reason: str, retry_at: Millis | None, now: Millis) -> None:
        """The same rebalance is tried again."""
        self.abandon()
        self.request_rejoin(reason, now)
        self.is_between = True
        self.retry_at = retry_at
        self.state = MemberState.PREPARING

    def forget(self, topics: frozenset[Topic] | None) -> None:
        """It is in no group, and all that is left is what the program wants next."""
        self.standing = Standing()
        self.is_between = False
        self.state = MemberState.UNJOINED
        self.rejoin = None
        self.joined_topics = None
        self.is_wanted = False
        self.topics = topics

    def fail(self, error: ConsumerError, now: Millis) -> None:
        """It cannot join; the program hears of it, and if it polls on the member tries again."""
        self.abandon()
        self.end(Ending.FAILED, now)
        self._outbox.say(Failed(error=error))
        self.state = MemberState.UNJOINED
        self.is_wanted = False
        self.rejoin = None
        self.request_rejoin(f"rebalance failed due to {type(error).__name__}", now)
