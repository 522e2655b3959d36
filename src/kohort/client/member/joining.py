"""JoinGroup and SyncGroup: asked, answered, and made sense of.

What must be given up before and heard of after is somebody else's concern.
"""

from collections.abc import Mapping
from typing import Final

from kohort.client.assignors import Assignor, RebalanceProtocol, Subscriber
from kohort.client.backoff import Backoff
from kohort.client.errors import BadAssignment, ConsumerError, Fenced
from kohort.client.member.coordinator_search import CoordinatorSearch
from kohort.client.member.effects import WatchTopics
from kohort.client.member.events import Loss
from kohort.client.member.leading import (
    deal,
    read_assignment,
    read_subscribers,
    topics_of,
    write_subscription,
)
from kohort.client.member.liveness import Liveness
from kohort.client.member.membership import NO_MEMBER, Membership, MemberState, Standing
from kohort.client.member.outbox import Outbox
from kohort.client.member.settings import MemberSettings
from kohort.client.refusals import NOT_THERE, named, refusal
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, Generation, MemberId, Millis, Topic
from kohort.wire.api.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kohort.wire.api.k14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

PROTOCOL_TYPE: Final = "consumer"
JOIN_LAPSE_MS: Final = 5_000
"""What a JoinGroup may take beyond the time that the coordinator waits for everyone."""


class Joining:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        backoff: Backoff,
        membership: Membership,
        search: CoordinatorSearch,
        *,
        protocol: RebalanceProtocol,
        liveness: Liveness,
    ) -> None:
        self._settings = settings
        self._protocol = protocol
        self._outbox = outbox
        self._backoff = backoff
        self._membership = membership
        self._search = search
        self._liveness = liveness
        self._attempts = 0
        self._sent_at = Millis(0)
        self._seen: Mapping[Topic, int] | None = None
        self._watched: frozenset[Topic] = frozenset()
        self._subscribers: tuple[Subscriber, ...] | None = None
        """Of a leader that has yet to hear about the topics it is to deal out."""
        self._must_assign = False
        self._snapshot: Mapping[Topic, int] | None = None
        """What a leader knew when it dealt out the partitions."""
        self._last_assigned: frozenset[TopicPartition] = frozenset()
        self._last_generation = Generation(-1)

    # What the cluster has

    def watch(self, topics: frozenset[Topic]) -> None:
        if topics != self._watched:
            if not topics <= self._watched:
                self._seen = None
            self._watched = topics
            self._outbox.say(WatchTopics(topics=topics))

    def watch_own(self, topics: frozenset[Topic]) -> None:
        """What the program wants; and what a leader must know of besides."""
        self.watch(topics if self._snapshot is None else topics | self._watched)

    def see(self, partitions: Mapping[Topic, int]) -> None:
        self._seen = dict(partitions)

    @property
    def is_outdated(self) -> bool:
        """Whether this member, which led, would have dealt out otherwise had it known."""
        return (
            self._snapshot is not None
            and self._seen is not None
            and self._snapshot != self._seen_of(self._watched)
        )

    def forget_group(self) -> None:
        """It is no leader any more."""
        self._snapshot = None
        self._subscribers = None

    def _seen_of(self, topics: frozenset[Topic]) -> dict[Topic, int]:
        return {topic: n for topic, n in (self._seen or {}).items() if topic in topics}

    # JoinGroup

    def join(self, now: Millis) -> None:
        membership, coordinator = self._membership, self._search.coordinator
        assert coordinator is not None
        assert membership.topics is not None
        assert membership.rejoin is not None
        self.forget_group()
        # Joins travel on their own: a heartbeat may arrive when its generation is already over,
        # and its answer would be taken for the end of this membership.
        self._liveness.forget()
        membership.joined_topics = membership.topics
        membership.state = MemberState.JOINING
        membership.is_between = True
        try:
            offers = tuple(self._offer(each) for each in self._settings.assignors)
        except BadAssignment as error:
            membership.fail(error, now)
            return
        settings = self._settings
        body = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=membership.standing.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=offers,
            reason=membership.rejoin.reason,
        )
        self._sent_at = now
        timeout_ms = max(settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_LAPSE_MS)
        membership.attempt = self._outbox.send(
            body, coordinator, Millis(timeout_ms), self._on_joined
        )

    def _offer(self, assignor: Assignor) -> JoinGroupRequestProtocol:
        membership = self._membership
        mine = Subscriber(
            member_id=membership.standing.member_id,
            topics=membership.topics or frozenset(),
            owned=tuple(membership.held),
            generation=membership.standing.generation,
            rack=self._settings.client_rack,
        )
        metadata = write_subscription(
            assignor, mine, sorted(self._last_assigned), self._last_generation
        )
        return JoinGroupRequestProtocol(name=assignor.name, metadata=metadata)

    def _on_joined(self, answer: object, now: Millis) -> None:
        membership = self._membership
        membership.attempt = None
        if membership.draft is not None:
            membership.draft.join_ms += now - self._sent_at
        if isinstance(answer, Loss):
            self._on_loss(answer, now)
            return
        assert isinstance(answer, JoinGroupResponse)
        error = named(answer.error_code)
        if error is ErrorCode.NONE:
            self._on_generation(answer, now)
        elif error is ErrorCode.MEMBER_ID_REQUIRED:
            self._on_named(answer.member_id, now)
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            membership.reset(f"encountered {error.name} from JOIN_GROUP response", now)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            membership.retry(_failed_due_to(error), None, now)
        elif error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or error in NOT_THERE:
            self._on_trouble(error, now)
        else:
            self._refuse(answer.error_code, "joining", now)

    def _on_named(self, member_id: MemberId, now: Millis) -> None:
        """The coordinator has an id for this member, and wants it to come back with it."""
        membership = self._membership
        reason = f"need to re-join with the given member-id: {member_id}"
        is_usual = membership.standing.member_id == NO_MEMBER and member_id != NO_MEMBER
        membership.standing = Standing(member_id=member_id)
        if is_usual:
            membership.retry(reason, None, now)
        else:
            self._on_failed(reason, now)  # once is enough (KIP-394): do not race with a broken one

    def _on_generation(self, answer: JoinGroupResponse, now: Millis) -> None:
        membership = self._membership
        if answer.generation_id < 0 or answer.member_id == NO_MEMBER:
            self._refuse(ErrorCode.UNKNOWN_SERVER_ERROR, "joining without a generation", now)
            return
        if answer.protocol_type not in (None, PROTOCOL_TYPE):
            self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "joining", now)
            return
        is_leader = answer.leader == answer.member_id
        membership.standing = Standing(
            generation=answer.generation_id,
            member_id=answer.member_id,
            protocol=answer.protocol_name,
        )
        membership.state = MemberState.SYNCING
        membership.is_between = False
        self._liveness.start(now)
        if membership.draft is not None:
            membership.draft.generation = answer.generation_id
            membership.draft.member_id = answer.member_id
            membership.draft.protocol = answer.protocol_name
            membership.draft.is_leader = is_leader
            membership.draft.members = len(answer.members) if is_leader else None
        try:
            self._get_assignor()
            subscribers = read_subscribers(answer.members) if is_leader else ()
        except BadAssignment as error:
            membership.fail(error, now)
            return
        if not is_leader:
            self.watch(membership.topics or frozenset())
            self._sync({}, now)
            return
        self._subscribers = subscribers
        self._must_assign = not answer.skip_assignment
        self.watch(topics_of(subscribers))
        self.lead(now)

    # SyncGroup

    def lead(self, now: Millis) -> None:
        """Deal out the partitions, once it is known which there are."""
        if self._subscribers is None or self._seen is None:
            return
        if self._membership.state is not MemberState.SYNCING:
            return
        subscribers, self._subscribers = self._subscribers, None
        if self._search.coordinator is None:
            self.give_up(now)
            return
        partitions = self._seen_of(self._watched)
        dealt: Mapping[MemberId, bytes] = {}
        if self._must_assign:
            try:
                dealt = deal(self._get_assignor(), self._protocol, partitions, subscribers)
            except BadAssignment as error:
                self._membership.fail(error, now)
                return
        self._snapshot = partitions
        self._sync(dealt, now)

    def _get_assignor(self) -> Assignor:
        name = self._membership.standing.protocol
        for each in self._settings.assignors:
            if each.name == name:
                return each
        raise BadAssignment(f"the group chose assignor {name!r}, which this member did not offer")

    def _sync(self, dealt: Mapping[MemberId, bytes], now: Millis) -> None:
        membership = self._membership
        coordinator = self._search.coordinator
        assert coordinator is not None
        body = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=membership.standing.generation,
            member_id=membership.standing.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=membership.standing.protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in dealt.items()
            ),
        )
        self._sent_at = now
        membership.attempt = self._outbox.send(
            body, coordinator, self._settings.request_timeout_ms, self._on_synced
        )

    def _on_synced(self, answer: object, now: Millis) -> None:
        membership = self._membership
        membership.attempt = None
        if membership.draft is not None:
            membership.draft.sync_ms += now - self._sent_at
        if isinstance(answer, Loss):
            self._on_loss(answer, now)
            return
        assert isinstance(answer, SyncGroupResponse)
        error = named(answer.error_code)
        if error is ErrorCode.NONE:
            self._on_assignment(answer, now)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            membership.restart(_failed_due_to(error), now)
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            membership.reset(
                f"encountered {error.name} from SYNC_GROUP response",
                now,
                keeps_id=error is ErrorCode.ILLEGAL_GENERATION,
            )
        elif error in NOT_THERE:
            self._on_trouble(error, now)
        else:
            self._refuse(answer.error_code, "syncing", now)

    def _on_assignment(self, answer: SyncGroupResponse, now: Millis) -> None:
        membership = self._membership
        is_other_type = answer.protocol_type not in (None, PROTOCOL_TYPE)
        if is_other_type or answer.protocol_name not in (None, membership.standing.protocol):
            self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "syncing", now)
            return
        try:
            assignment = read_assignment(answer.assignment)
        except BadAssignment as error:
            membership.fail(error, now)
            return
        wanted = membership.topics or frozenset()
        if not all(topic in wanted for topic, _ in assignment):
            # Most likely the program has changed its mind since.
            # DEVIATION: given topics it does not want, Kafka's client joins again at once. Here
            # it waits a little, lest a leader that always errs keep the group busy.
            self._on_failed("received assignment does not match the current subscription", now)
            return
        self._attempts = 0
        self._last_assigned = assignment
        self._last_generation = membership.standing.generation
        membership.assignment = assignment
        membership.rejoin = None
        membership.state = MemberState.ASSIGNING

    # What can go wrong

    def _on_loss(self, loss: Loss, now: Millis) -> None:
        self._search.lose(now)
        self._on_failed(f"rebalance failed due to a {loss} coordinator", now)

    def _on_trouble(self, error: ErrorCode, now: Millis) -> None:
        if error in NOT_THERE:
            self._search.lose(now)
        self._on_failed(_failed_due_to(error), now)

    def _on_failed(self, reason: str, now: Millis) -> None:
        self._membership.retry(reason, self._backoff.after(now, self._attempts), now)
        self._attempts += 1

    def give_up(self, now: Millis) -> None:
        """The coordinator is lost, and with it the answer that was awaited."""
        self._on_failed("rebalance failed due to a lost coordinator", now)

    def _refuse(self, code: int, what: str, now: Millis) -> None:
        error: ConsumerError = refusal(self._settings.group_id, code, what)
        if code == ErrorCode.FENCED_INSTANCE_ID:
            error = Fenced(self._settings.instance_id)
        self._membership.fail(error, now)


def _failed_due_to(error: ErrorCode) -> str:
    return f"rebalance failed due to {error.name}"
