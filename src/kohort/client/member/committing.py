"""OffsetCommit: what was asked to be kept, in the order it was asked, until it is or cannot be.

A commit belongs to the generation it was asked in and is never sent in another: by then somebody
else may have gone further. One that is tried again never undoes a newer one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from kohort.client.backoff import Backoff
from kohort.client.errors import (
    CommitFailed,
    CommitNotKept,
    ConsumerError,
    Fenced,
    OffsetNotValid,
    RebalanceUnderWay,
)
from kohort.client.member.coordinator_search import CoordinatorSearch
from kohort.client.member.effects import AutoCommitted, Broker, Committed
from kohort.client.member.events import Loss, Position, Question, RequestNumber
from kohort.client.member.membership import Membership, MemberState, Standing
from kohort.client.member.outbox import Outbox
from kohort.client.member.settings import MemberSettings
from kohort.client.refusals import NOT_THERE, named, refusal
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, Millis, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Positions = Mapping[TopicPartition, Position]

_OVER = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}
)
_LOST = NOT_THERE | {ErrorCode.REQUEST_TIMED_OUT}
_PASSING = _LOST | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Occasion(Enum):
    ASKED = auto()
    """By the program, which hears of it."""
    PERIODIC = auto()
    """By the clock."""
    LAST = auto()
    """Before partitions go, which wait for it."""


@dataclass(slots=True, eq=False)
class Commit:
    order: int
    occasion: Occasion
    question: Question | None
    """None if nobody waits for the answer."""
    positions: Positions
    standing: Standing
    ends_at: Millis
    """When it is given up."""
    attempts: int = 0
    retry_at: Millis | None = None
    number: RequestNumber | None = None
    broker: Broker | None = None
    """Where it was sent."""
    sent: set[TopicPartition] = field(default_factory=set)


class Commits:
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
        self._open: list[Commit] = []
        """In the order they were asked for."""
        self._asked = 0
        self._kept: dict[TopicPartition, int] = {}
        """The newest commit of each partition that was kept; older ones may yet be sent again."""

    # Asking

    def ask(self, question: Question, positions: Positions, now: Millis) -> None:
        invalid = [at for at, position in positions.items() if position.offset < 0]
        if invalid:
            error = OffsetNotValid(f"a negative offset for {sorted(invalid)} cannot be committed")
            self._outbox.say(Committed(question=question, error=error))
            return
        ends_at = Millis(now + self._settings.default_api_timeout_ms)
        self._add(Occasion.ASKED, question, positions, ends_at)

    def keep(self, occasion: Occasion, positions: Positions, ends_at: Millis) -> None:
        """Without being asked to."""
        if positions:
            self._add(occasion, None, positions, ends_at)

    def _add(
        self, occasion: Occasion, question: Question | None, positions: Positions, ends_at: Millis
    ) -> None:
        self._asked += 1
        standing = self._find_standing()
        commit = Commit(
            order=self._asked,
            occasion=occasion,
            question=question,
            positions=dict(positions),
            standing=standing or Standing(),
            ends_at=ends_at,
        )
        self._open.append(commit)
        if not positions:
            self._finish(commit, None)
        elif standing is None:
            self._finish(commit, self._why_not())

    @property
    def is_possible(self) -> bool:
        return self._find_standing() is not None

    def _find_standing(self) -> Standing | None:
        """In whose name to commit; nobody's, where no group deals out the partitions."""
        membership = self._membership
        if membership.topics is None:
            return Standing()
        # DEVIATION: Kafka's client refuses to commit from the moment it joins. Here it commits
        # until JoinGroup is answered, for as long as coordinators take it.
        if membership.state is MemberState.SYNCING or not membership.standing.is_valid:
            return None
        return membership.standing

    def _why_not(self) -> ConsumerError:
        if self._membership.is_rebalancing:
            return RebalanceUnderWay("the group is rebalancing; poll, then commit again")
        return CommitFailed(
            "this consumer is not in the group (any more), so others may have its partitions; "
            "if it polls, it joins again"
        )

    def withdraw(self, question: Question) -> None:
        for commit in self._open:
            if commit.question == question:
                commit.question = None
                if commit.number is None:
                    self._open.remove(commit)
                return

    def refuse_all(self, error: ConsumerError) -> None:
        for commit in list(self._open):
            if commit.number is None:
                self._finish(commit, error)

    # Sending

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for a coordinator."""
        return any(each.number is None for each in self._open)

    @property
    def is_idle(self) -> bool:
        return not self._open

    def has(self, occasion: Occasion) -> bool:
        return any(each.occasion is occasion for each in self._open)

    def flush(self, now: Millis) -> None:
        for commit in list(self._open):
            if commit.number is None and now >= commit.ends_at:
                error = CommitNotKept("the coordinator did not keep it in time; try again")
                self._finish(commit, error)
        for commit in list(self._open):
            if self._may_send(commit, now):
                self._send(commit)

    def _may_send(self, commit: Commit, now: Millis) -> bool:
        if commit.number is not None or self._search.coordinator is None:
            return False
        if commit.attempts == 0:
            return True
        # A second attempt waits until it is known what has become of newer commits.
        is_first = all(each.number is None for each in self._open)
        return is_first and (commit.retry_at is None or now >= commit.retry_at)

    def _send(self, commit: Commit) -> None:
        if commit.standing != self._find_standing():
            self._finish(commit, self._outdated())
            return
        commit.sent = {at for at in commit.positions if self._kept.get(at, 0) < commit.order}
        if not commit.sent:
            self._finish(commit, None)
            return
        body = OffsetCommitRequest(
            group_id=self._settings.group_id,
            generation_id_or_member_epoch=commit.standing.generation,
            member_id=commit.standing.member_id,
            group_instance_id=self._settings.instance_id if commit.standing.is_valid else None,
            topics=_topics({at: commit.positions[at] for at in commit.sent}),
        )
        commit.retry_at = None
        commit.broker = self._search.coordinator
        commit.number = self._outbox.send(
            body,
            commit.broker,
            self._settings.request_timeout_ms,
            lambda answer, at: self._on_answer(commit, answer, at),
        )

    def due(self) -> Millis | None:
        moments = [each.ends_at for each in self._open if each.number is None]
        if self._search.coordinator is not None and all(each.number is None for each in self._open):
            moments += [each.retry_at for each in self._open if each.retry_at is not None]
        return min(moments, default=None)

    # Hearing

    def _on_answer(self, commit: Commit, answer: object, now: Millis) -> None:
        commit.number = None
        if isinstance(answer, Loss):
            self._search.lose_if(commit.broker, now)
            self._try_again(commit, CommitNotKept(f"the coordinator is {answer}"), now)
            return
        assert isinstance(answer, OffsetCommitResponse)
        errors = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        # The coordinator answers for every partition; one it has lost sight of is not kept.
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        codes = {at: errors.get(at, missing) for at in sorted(commit.sent)}
        for at, code in codes.items():
            if code == ErrorCode.NONE:
                self._kept[at] = max(commit.order, self._kept.get(at, 0))
        wrong = [(at, code) for at, code in codes.items() if code != ErrorCode.NONE]
        # What is wrong with one topic matters less than what is wrong with the member.
        wrong.sort(key=lambda each: each[1] == ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if not wrong:
            self._finish(commit, None)
        else:
            self._on_error(commit, *wrong[0], now)

    def _on_error(self, commit: Commit, at: TopicPartition, code: int, now: Millis) -> None:
        error = named(code)
        if error in _PASSING:
            if error in _LOST:
                self._search.lose_if(commit.broker, now)
            self._try_again(
                commit, CommitNotKept(f"{error.name} for {at.topic}-{at.partition}"), now
            )
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._on_rebalance(commit, now)
        elif error in _OVER:
            self._on_over(commit, error, now)
        else:
            what = f"committing {at.topic}-{at.partition}"
            self._finish(commit, refusal(self._settings.group_id, code, what))

    def _on_rebalance(self, commit: Commit, now: Millis) -> None:
        if self._membership.state in (MemberState.STABLE, MemberState.ASSIGNING):
            reason = "offset commit failed since group is already rebalancing"
            self._membership.request_rejoin(reason, now)
        self._finish(commit, RebalanceUnderWay("the group is rebalancing; poll, then commit again"))

    def _on_over(self, commit: Commit, error: ErrorCode, now: Millis) -> None:
        membership = self._membership
        # Joins travel on their own, and may have begun a new generation before this commit came;
        # if there is more to it, JoinGroup is answered with the same.
        # DEVIATION: for what is said to a commit of a generation that is over, Kafka's client at
        # times gives up the one it is in.
        if commit.standing != membership.standing or membership.is_rebalancing:
            self._finish(commit, self._outdated())
            return
        reason = f"encountered {error.name} from OFFSET_COMMIT response"
        if error is ErrorCode.FENCED_INSTANCE_ID:
            why: ConsumerError = Fenced(self._settings.instance_id)
            membership.fence(why, reason, now)
        else:
            why = CommitFailed(
                f"the group has gone on without this consumer ({error.name}); most likely it did "
                "not poll for longer than max.poll.interval.ms, or its heartbeats were lost"
            )
            if commit.standing.is_valid:
                keeps_id = error is ErrorCode.ILLEGAL_GENERATION
                membership.reset(reason, now, keeps_id=keeps_id)
        self._finish(commit, why)

    def _outdated(self) -> ConsumerError:
        if self._membership.is_rebalancing:
            return RebalanceUnderWay("a rebalance came between; poll, then commit again")
        return CommitFailed("a rebalance came between, and the partitions may be another's now")

    def _try_again(self, commit: Commit, why: ConsumerError, now: Millis) -> None:
        # DEVIATION: Kafka's client never tries an asynchronous commit again, for fear that it might
        # undo a newer one. Here that cannot happen.
        is_over = now >= commit.ends_at
        is_withdrawn = commit.occasion is Occasion.ASKED and commit.question is None
        if is_over or is_withdrawn:
            self._finish(commit, why)
            return
        commit.retry_at = self._backoff.after(now, commit.attempts)
        commit.attempts += 1

    def _finish(self, commit: Commit, error: ConsumerError | None) -> None:
        self._open.remove(commit)
        if commit.occasion is not Occasion.ASKED:
            self._outbox.say(AutoCommitted(positions=commit.positions, error=error))
        elif commit.question is not None:
            self._outbox.say(Committed(question=commit.question, error=error))


def _topics(positions: Positions) -> tuple[OffsetCommitRequestTopic, ...]:
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
