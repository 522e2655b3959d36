"""OffsetCommit: sends commits in order and retries them.

A commit is sent only in the generation in which it was requested: later, another member may have
committed a higher offset. A retried commit never overwrites a newer one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from kohort.client.error_codes import COORDINATOR_MOVED, error_code, group_error
from kohort.client.errors import (
    CommitFailedError,
    ConsumerError,
    FencedInstanceIdError,
    InvalidOffsetError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
)
from kohort.client.member.effects import AutoCommitCompleted, BrokerAddress, CommitCompleted
from kohort.client.member.find_coordinator import CoordinatorSearch
from kohort.client.member.member_events import CallId, OffsetAndMetadata, RequestFailure, RequestId
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.membership import MemberGeneration, Membership, MemberState
from kohort.client.member.outbox import Outbox
from kohort.protocol.backoff import Backoff
from kohort.types import ErrorCode, Millis, Topic, TopicPartition
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

OffsetsByPartition = Mapping[TopicPartition, OffsetAndMetadata]

_GENERATION_ENDED = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}
)
_COORDINATOR_LOST = COORDINATOR_MOVED | {ErrorCode.REQUEST_TIMED_OUT}
_RETRIABLE = _COORDINATOR_LOST | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class CommitTrigger(Enum):
    REQUESTED = auto()
    """commit() or commit_async(); the application gets the result."""
    PERIODIC = auto()
    """The auto-commit interval."""
    BEFORE_REVOKE = auto()
    """Partitions are revoked after it has finished."""


@dataclass(slots=True, eq=False)
class PendingCommit:
    order: int
    trigger: CommitTrigger
    call_id: CallId | None
    """None if no caller waits for the result."""
    positions: OffsetsByPartition
    generation: MemberGeneration
    deadline: Millis
    attempts: int = 0
    retry_at: Millis | None = None
    request_id: RequestId | None = None
    broker: BrokerAddress | None = None
    """Where it was sent."""
    sent: set[TopicPartition] = field(default_factory=set)


class OffsetCommits:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        backoff: Backoff,
        membership: Membership,
        search: CoordinatorSearch,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._backoff = backoff
        self._membership = membership
        self._search = search
        self._open: list[PendingCommit] = []
        """In the order of the requests."""
        self._requested = 0
        self._committed: dict[TopicPartition, int] = {}
        """The newest successful commit of each partition; older ones may still be retried."""

    # Requests

    def request(self, call_id: CallId, positions: OffsetsByPartition, now: Millis) -> None:
        invalid = [at for at, position in positions.items() if position.offset < 0]
        if invalid:
            error = InvalidOffsetError(f"cannot commit a negative offset: {_names(invalid)}")
            self._outbox.add(CommitCompleted(call_id=call_id, error=error))
            return
        deadline = Millis(now + self._settings.default_api_timeout_ms)
        self._add(CommitTrigger.REQUESTED, call_id, positions, deadline)

    def commit_automatically(
        self, trigger: CommitTrigger, positions: OffsetsByPartition, deadline: Millis
    ) -> None:
        if positions:
            self._add(trigger, None, positions, deadline)

    def _add(
        self,
        trigger: CommitTrigger,
        call_id: CallId | None,
        positions: OffsetsByPartition,
        deadline: Millis,
    ) -> None:
        self._requested += 1
        generation = self._find_generation()
        commit = PendingCommit(
            order=self._requested,
            trigger=trigger,
            call_id=call_id,
            positions=dict(positions),
            generation=generation or MemberGeneration(),
            deadline=deadline,
        )
        self._open.append(commit)
        if not positions:
            self._finish(commit, None)
        elif generation is None:
            self._finish(commit, self._cannot_commit_error())

    @property
    def is_possible(self) -> bool:
        return self._find_generation() is not None

    def _find_generation(self) -> MemberGeneration | None:
        """The generation to commit in; an empty one if partitions are assigned manually."""
        membership = self._membership
        if membership.topics is None:
            return MemberGeneration()
        # DEVIATION: Kafka's client refuses commits as soon as it sends JoinGroup. This client can
        # commit until it receives the JoinGroup response; coordinators accept commits until then.
        if membership.state is MemberState.SYNCING or not membership.generation.is_valid:
            return None
        return membership.generation

    def _cannot_commit_error(self) -> ConsumerError:
        if self._membership.is_rebalancing:
            return RebalanceInProgressError(
                "the group is rebalancing; call poll(), then commit again"
            )
        return CommitFailedError(
            "this consumer is not a member of the group, so other members may own its partitions; "
            "call poll() to join again"
        )

    def cancel(self, call_id: CallId) -> None:
        for commit in self._open:
            if commit.call_id == call_id:
                commit.call_id = None
                if commit.request_id is None:
                    self._open.remove(commit)
                return

    def fail_all(self, error: ConsumerError) -> None:
        for commit in list(self._open):
            if commit.request_id is None:
                self._finish(commit, error)

    # Sending

    @property
    def is_waiting(self) -> bool:
        """Whether a commit waits for the coordinator."""
        return any(each.request_id is None for each in self._open)

    @property
    def is_idle(self) -> bool:
        return not self._open

    def has(self, trigger: CommitTrigger) -> bool:
        return any(each.trigger is trigger for each in self._open)

    def flush(self, now: Millis) -> None:
        for commit in list(self._open):
            if commit.request_id is None and now >= commit.deadline:
                error = RetriableCommitFailedError(
                    "the coordinator did not confirm the commit in time; try again"
                )
                self._finish(commit, error)
        for commit in list(self._open):
            if self._may_send(commit, now):
                self._send(commit)

    def _may_send(self, commit: PendingCommit, now: Millis) -> bool:
        if commit.request_id is not None or self._search.coordinator is None:
            return False
        if commit.attempts == 0:
            return True
        # A retry waits for the responses of newer commits.
        is_first = all(each.request_id is None for each in self._open)
        return is_first and (commit.retry_at is None or now >= commit.retry_at)

    def _send(self, commit: PendingCommit) -> None:
        if commit.generation != self._find_generation():
            self._finish(commit, self._outdated_error())
            return
        commit.sent = {at for at in commit.positions if self._committed.get(at, 0) < commit.order}
        if not commit.sent:
            self._finish(commit, None)
            return
        body = OffsetCommitRequest(
            group_id=self._settings.group_id,
            generation_id_or_member_epoch=commit.generation.generation_id,
            member_id=commit.generation.member_id,
            group_instance_id=self._settings.instance_id if commit.generation.is_valid else None,
            topics=_topics({at: commit.positions[at] for at in commit.sent}),
        )
        commit.retry_at = None
        commit.broker = self._search.coordinator
        commit.request_id = self._outbox.send(
            body,
            commit.broker,
            self._settings.request_timeout_ms,
            lambda response, at: self._on_response(commit, response, at),
        )

    def due(self) -> Millis | None:
        deadlines = [each.deadline for each in self._open if each.request_id is None]
        if self._search.coordinator is not None and all(
            each.request_id is None for each in self._open
        ):
            deadlines += [each.retry_at for each in self._open if each.retry_at is not None]
        return min(deadlines, default=None)

    # Responses

    def _on_response(self, commit: PendingCommit, response: object, now: Millis) -> None:
        commit.request_id = None
        if isinstance(response, RequestFailure):
            self._search.mark_unknown_if(commit.broker, now)
            self._try_again(
                commit,
                RetriableCommitFailedError(f"request to the coordinator failed ({response})"),
                now,
            )
            return
        assert isinstance(response, OffsetCommitResponse)
        errors = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }
        # A partition that is missing in the response counts as failed.
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        codes = {at: errors.get(at, missing) for at in sorted(commit.sent)}
        for at, code in codes.items():
            if code == ErrorCode.NONE:
                self._committed[at] = max(commit.order, self._committed.get(at, 0))
        failed = [(at, code) for at, code in codes.items() if code != ErrorCode.NONE]
        # Errors of the member matter more than those of one topic.
        failed.sort(key=lambda each: each[1] == ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if not failed:
            self._finish(commit, None)
        else:
            self._on_error(commit, *failed[0], now)

    def _on_error(self, commit: PendingCommit, at: TopicPartition, code: int, now: Millis) -> None:
        error = error_code(code)
        if error in _RETRIABLE:
            if error in _COORDINATOR_LOST:
                self._search.mark_unknown_if(commit.broker, now)
            self._try_again(
                commit,
                RetriableCommitFailedError(f"{error.name} for {at.topic}-{at.partition}"),
                now,
            )
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._on_rebalance(commit, now)
        elif error in _GENERATION_ENDED:
            self._on_generation_ended(commit, error, now)
        else:
            what = f"OffsetCommit of {at.topic}-{at.partition}"
            self._finish(commit, group_error(self._settings.group_id, code, what))

    def _on_rebalance(self, commit: PendingCommit, now: Millis) -> None:
        if self._membership.state in (MemberState.STABLE, MemberState.ASSIGNING):
            reason = "offset commit failed since group is already rebalancing"
            self._membership.request_rejoin(reason, now)
        self._finish(
            commit,
            RebalanceInProgressError("the group is rebalancing; call poll(), then commit again"),
        )

    def _on_generation_ended(self, commit: PendingCommit, error: ErrorCode, now: Millis) -> None:
        membership = self._membership
        # JoinGroup uses its own connection and may have started a new generation before this
        # commit arrived. If the member is really gone, JoinGroup returns the same error.
        # DEVIATION: on an error for a commit of an old generation, Kafka's client sometimes resets
        # the current one.
        if commit.generation != membership.generation or membership.is_rebalancing:
            self._finish(commit, self._outdated_error())
            return
        reason = f"encountered {error.name} from OFFSET_COMMIT response"
        if error is ErrorCode.FENCED_INSTANCE_ID:
            why: ConsumerError = FencedInstanceIdError(self._settings.instance_id)
            membership.fence(why, reason, now)
        else:
            why = CommitFailedError(
                f"the group has rebalanced without this consumer ({error.name}); most likely it "
                "did not call poll() within max.poll.interval.ms, or its heartbeats were lost"
            )
            if commit.generation.is_valid:
                keeps_id = error is ErrorCode.ILLEGAL_GENERATION
                membership.reset(reason, now, keeps_id=keeps_id)
        self._finish(commit, why)

    def _outdated_error(self) -> ConsumerError:
        if self._membership.is_rebalancing:
            return RebalanceInProgressError(
                "a rebalance has started; call poll(), then commit again"
            )
        return CommitFailedError("a rebalance has finished; other members may own the partitions")

    def _try_again(self, commit: PendingCommit, why: ConsumerError, now: Millis) -> None:
        # DEVIATION: Kafka's client never retries an asynchronous commit, because the retry could
        # overwrite a newer commit. Here it cannot.
        is_late = now >= commit.deadline
        is_cancelled = commit.trigger is CommitTrigger.REQUESTED and commit.call_id is None
        if is_late or is_cancelled:
            self._finish(commit, why)
            return
        commit.retry_at = self._backoff.after(now, commit.attempts)
        commit.attempts += 1

    def _finish(self, commit: PendingCommit, error: ConsumerError | None) -> None:
        self._open.remove(commit)
        if commit.trigger is not CommitTrigger.REQUESTED:
            self._outbox.add(AutoCommitCompleted(positions=commit.positions, error=error))
        elif commit.call_id is not None:
            self._outbox.add(CommitCompleted(call_id=commit.call_id, error=error))


def _names(partitions: list[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions))


def _topics(positions: OffsetsByPartition) -> tuple[OffsetCommitRequestTopic, ...]:
    by_topic: dict[Topic, list[OffsetCommitRequestPartition]] = {}
    for at, position in sorted(positions.items()):
        by_topic.setdefault(at.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=at.partition,
                committed_offset=position.offset,
                committed_leader_epoch=position.leader_epoch,
                committed_metadata=position.metadata,
            )
        )
    return tuple(
        OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
        for topic, partitions in by_topic.items()
    )
