"""JoinGroup and SyncGroup: requests, responses and retries.

Revoking partitions before and calling the listener after is done in rebalance.py.
"""

from collections.abc import Mapping
from typing import Final

from kohort.assignors import Assignor, RebalanceProtocol, Subscriber
from kohort.client.error_codes import COORDINATOR_MOVED, error_code, group_error
from kohort.client.errors import ConsumerError, FencedInstanceIdError, InvalidAssignmentError
from kohort.client.member.effects import WatchTopics
from kohort.client.member.find_coordinator import CoordinatorSearch
from kohort.client.member.heartbeats import Heartbeats
from kohort.client.member.leader_assignment import (
    compute_assignments,
    read_assignment,
    read_subscribers,
    topics_of,
    write_subscription,
)
from kohort.client.member.member_events import RequestFailure
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.membership import NO_MEMBER, MemberGeneration, Membership, MemberState
from kohort.client.member.outbox import Outbox
from kohort.protocol.backoff import Backoff
from kohort.types import ErrorCode, Generation, MemberId, Millis, Topic, TopicPartition
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
"""Added to max.poll.interval.ms: the coordinator waits that long for all members to join."""


class Joiner:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        backoff: Backoff,
        membership: Membership,
        search: CoordinatorSearch,
        *,
        protocol: RebalanceProtocol,
        heartbeats: Heartbeats,
    ) -> None:
        self._settings = settings
        self._protocol = protocol
        self._outbox = outbox
        self._backoff = backoff
        self._membership = membership
        self._search = search
        self._heartbeats = heartbeats
        self._attempts = 0
        self._sent_at = Millis(0)
        self._seen: Mapping[Topic, int] | None = None
        self._watched: frozenset[Topic] = frozenset()
        self._subscribers: tuple[Subscriber, ...] | None = None
        """Set while a leader waits for metadata of the topics it must assign."""
        self._must_assign = False
        self._snapshot: Mapping[Topic, int] | None = None
        """The partition counts that the leader used for the current assignment."""
        self._last_assigned: frozenset[TopicPartition] = frozenset()
        self._last_generation = Generation(-1)

    # Topic metadata

    def watch(self, topics: frozenset[Topic]) -> None:
        if topics != self._watched:
            if not topics <= self._watched:
                self._seen = None
            self._watched = topics
            self._outbox.add(WatchTopics(topics=topics))

    def watch_own(self, topics: frozenset[Topic]) -> None:
        """Watch the subscribed topics; a leader also keeps watching those of its group."""
        self.watch(topics if self._snapshot is None else topics | self._watched)

    def update_topics(self, partitions: Mapping[Topic, int]) -> None:
        self._seen = dict(partitions)

    @property
    def is_outdated(self) -> bool:
        """Whether this member is leader and partition counts have changed since it assigned."""
        return (
            self._snapshot is not None
            and self._seen is not None
            and self._snapshot != self._seen_of(self._watched)
        )

    def forget_leadership(self) -> None:
        """This member is not the leader any more."""
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
        self.forget_leadership()
        # JoinGroup uses its own connection, so a heartbeat may arrive after the generation ended.
        # Its error response must not reset this member.
        self._heartbeats.cancel()
        membership.joined_topics = membership.topics
        membership.state = MemberState.JOINING
        membership.is_rejoining = True
        try:
            offers = tuple(self._offer(each) for each in self._settings.assignors)
        except InvalidAssignmentError as error:
            membership.fail(error, now)
            return
        settings = self._settings
        body = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=membership.generation.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=offers,
            reason=membership.rejoin.reason,
        )
        self._sent_at = now
        timeout_ms = max(settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_LAPSE_MS)
        membership.in_flight = self._outbox.send(
            body, coordinator, Millis(timeout_ms), self._on_joined
        )

    def _offer(self, assignor: Assignor) -> JoinGroupRequestProtocol:
        membership = self._membership
        mine = Subscriber(
            member_id=membership.generation.member_id,
            topics=membership.topics or frozenset(),
            owned=tuple(membership.owned),
            generation=membership.generation.generation_id,
            rack=self._settings.client_rack,
        )
        metadata = write_subscription(
            assignor, mine, sorted(self._last_assigned), self._last_generation
        )
        return JoinGroupRequestProtocol(name=assignor.name, metadata=metadata)

    def _on_joined(self, response: object, now: Millis) -> None:
        membership = self._membership
        membership.in_flight = None
        if membership.current_rebalance is not None:
            membership.current_rebalance.join_ms += now - self._sent_at
        if isinstance(response, RequestFailure):
            self._on_request_failure(response, now)
            return
        assert isinstance(response, JoinGroupResponse)
        error = error_code(response.error_code)
        if error is ErrorCode.NONE:
            self._on_generation(response, now)
        elif error is ErrorCode.MEMBER_ID_REQUIRED:
            self._on_member_id_required(response.member_id, now)
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            membership.reset(f"encountered {error.name} from JOIN_GROUP response", now)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            membership.retry(_failed_due_to(error), None, now)
        elif error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or error in COORDINATOR_MOVED:
            self._on_retriable_error(error, now)
        else:
            self._fail(response.error_code, "JoinGroup", now)

    def _on_member_id_required(self, member_id: MemberId, now: Millis) -> None:
        """The coordinator has assigned a member id and expects another JoinGroup with it."""
        membership = self._membership
        reason = f"need to re-join with the given member-id: {member_id}"
        is_usual = membership.generation.member_id == NO_MEMBER and member_id != NO_MEMBER
        membership.generation = MemberGeneration(member_id=member_id)
        if is_usual:
            membership.retry(reason, None, now)
        else:
            self._retry_later(reason, now)  # unexpected a second time (KIP-394): back off

    def _on_generation(self, response: JoinGroupResponse, now: Millis) -> None:
        membership = self._membership
        if response.generation_id < 0 or response.member_id == NO_MEMBER:
            self._fail(
                ErrorCode.UNKNOWN_SERVER_ERROR, "JoinGroup response without a generation", now
            )
            return
        if response.protocol_type not in (None, PROTOCOL_TYPE):
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "JoinGroup", now)
            return
        is_leader = response.leader == response.member_id
        membership.generation = MemberGeneration(
            generation_id=response.generation_id,
            member_id=response.member_id,
            protocol_name=response.protocol_name,
        )
        membership.state = MemberState.SYNCING
        membership.is_rejoining = False
        self._heartbeats.start(now)
        if membership.current_rebalance is not None:
            membership.current_rebalance.generation = response.generation_id
            membership.current_rebalance.member_id = response.member_id
            membership.current_rebalance.protocol = response.protocol_name
            membership.current_rebalance.is_leader = is_leader
            membership.current_rebalance.members = len(response.members) if is_leader else None
        try:
            self._get_assignor()
            subscribers = read_subscribers(response.members) if is_leader else ()
        except InvalidAssignmentError as error:
            membership.fail(error, now)
            return
        if not is_leader:
            self.watch(membership.topics or frozenset())
            self._sync({}, now)
            return
        self._subscribers = subscribers
        self._must_assign = not response.skip_assignment
        self.watch(topics_of(subscribers))
        self.assign_as_leader(now)

    # SyncGroup

    def assign_as_leader(self, now: Millis) -> None:
        """Compute the assignment as soon as partition counts are known."""
        if self._subscribers is None or self._seen is None:
            return
        if self._membership.state is not MemberState.SYNCING:
            return
        subscribers, self._subscribers = self._subscribers, None
        if self._search.coordinator is None:
            self.on_coordinator_lost(now)
            return
        partitions = self._seen_of(self._watched)
        assignments: Mapping[MemberId, bytes] = {}
        if self._must_assign:
            try:
                assignments = compute_assignments(
                    self._get_assignor(), self._protocol, partitions, subscribers
                )
            except InvalidAssignmentError as error:
                self._membership.fail(error, now)
                return
        self._snapshot = partitions
        self._sync(assignments, now)

    def _get_assignor(self) -> Assignor:
        name = self._membership.generation.protocol_name
        for each in self._settings.assignors:
            if each.name == name:
                return each
        raise InvalidAssignmentError(
            f"the group chose assignor {name!r}, which this member did not offer"
        )

    def _sync(self, assignments: Mapping[MemberId, bytes], now: Millis) -> None:
        membership = self._membership
        coordinator = self._search.coordinator
        assert coordinator is not None
        body = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=membership.generation.generation_id,
            member_id=membership.generation.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=membership.generation.protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ),
        )
        self._sent_at = now
        membership.in_flight = self._outbox.send(
            body, coordinator, self._settings.request_timeout_ms, self._on_synced
        )

    def _on_synced(self, response: object, now: Millis) -> None:
        membership = self._membership
        membership.in_flight = None
        if membership.current_rebalance is not None:
            membership.current_rebalance.sync_ms += now - self._sent_at
        if isinstance(response, RequestFailure):
            self._on_request_failure(response, now)
            return
        assert isinstance(response, SyncGroupResponse)
        error = error_code(response.error_code)
        if error is ErrorCode.NONE:
            self._on_assignment(response, now)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            membership.restart(_failed_due_to(error), now)
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            membership.reset(
                f"encountered {error.name} from SYNC_GROUP response",
                now,
                keeps_id=error is ErrorCode.ILLEGAL_GENERATION,
            )
        elif error in COORDINATOR_MOVED:
            self._on_retriable_error(error, now)
        else:
            self._fail(response.error_code, "SyncGroup", now)

    def _on_assignment(self, response: SyncGroupResponse, now: Millis) -> None:
        membership = self._membership
        is_other_type = response.protocol_type not in (None, PROTOCOL_TYPE)
        if is_other_type or response.protocol_name not in (
            None,
            membership.generation.protocol_name,
        ):
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "SyncGroup", now)
            return
        try:
            assignment = read_assignment(response.assignment)
        except InvalidAssignmentError as error:
            membership.fail(error, now)
            return
        wanted = membership.topics or frozenset()
        if not all(topic in wanted for topic, _ in assignment):
            # Most likely the subscription has changed since JoinGroup.
            # DEVIATION: given topics it has not subscribed to, Kafka's client joins again at once.
            # Here it backs off, so that a faulty leader cannot make the group rebalance in a loop.
            self._retry_later("received assignment does not match the current subscription", now)
            return
        self._attempts = 0
        self._last_assigned = assignment
        self._last_generation = membership.generation.generation_id
        membership.assignment = assignment
        membership.rejoin = None
        membership.state = MemberState.ASSIGNING

    # Failures

    def _on_request_failure(self, failure: RequestFailure, now: Millis) -> None:
        self._search.mark_unknown(now)
        self._retry_later(f"rebalance failed due to a {failure} coordinator", now)

    def _on_retriable_error(self, error: ErrorCode, now: Millis) -> None:
        if error in COORDINATOR_MOVED:
            self._search.mark_unknown(now)
        self._retry_later(_failed_due_to(error), now)

    def _retry_later(self, reason: str, now: Millis) -> None:
        self._membership.retry(reason, self._backoff.after(now, self._attempts), now)
        self._attempts += 1

    def on_coordinator_lost(self, now: Millis) -> None:
        """The response in flight will not come."""
        self._retry_later("rebalance failed due to a lost coordinator", now)

    def _fail(self, code: int, what: str, now: Millis) -> None:
        error: ConsumerError = group_error(self._settings.group_id, code, what)
        if code == ErrorCode.FENCED_INSTANCE_ID:
            error = FencedInstanceIdError(self._settings.instance_id)
        self._membership.fail(error, now)


def _failed_due_to(error: ErrorCode) -> str:
    return f"rebalance failed due to {error.name}"
