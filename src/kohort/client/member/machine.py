"""A member of a consumer group, as a pure machine: told what happens, it says what it wants done.

It is the mirror image of the coordinator. It knows no clock, no dice, no socket and no thread; the
program's listener and the brokers are asked by effects, and answer by events.
"""

from collections.abc import Callable
from typing import assert_never

from kohort.client.assignors import RebalanceProtocol
from kohort.client.backoff import Backoff
from kohort.client.errors import ConsumerError, WrongUse
from kohort.client.member.auto_commit import AutoCommit
from kohort.client.member.committed_offsets import CommittedOffsets
from kohort.client.member.committing import Commits
from kohort.client.member.coordinator_search import CoordinatorSearch
from kohort.client.member.effects import (
    Broker,
    Change,
    Committed,
    CommittedTold,
    Effect,
    Ended,
    Failed,
)
from kohort.client.member.events import (
    Answered,
    CallbackReturned,
    Closed,
    CommitAsked,
    CommittedAsked,
    Event,
    Polled,
    PositionsTold,
    RejoinAsked,
    Subscribed,
    TopicsSeen,
    Unanswered,
    Unsubscribed,
    Withdrawn,
    Woken,
)
from kohort.client.member.handover import Handover
from kohort.client.member.joining import Joining
from kohort.client.member.leaving import Leaving
from kohort.client.member.liveness import Liveness
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.outbox import Outbox
from kohort.client.member.program import Program
from kohort.client.member.rebalancing import Rebalancing
from kohort.client.member.settings import MemberSettings, check, choose_protocol
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, GroupId, MemberId, Millis, Topic

__all__ = ["Member", "MemberSettings", "MemberState"]


class Member:
    def __init__(self, settings: MemberSettings, roll: Callable[[], float]) -> None:
        """`roll` gives a number from 0 up to 1, so that not everyone tries again at once."""
        check(settings)
        self._settings = settings
        protocol = RebalanceProtocol.EAGER
        if settings.assignors:
            protocol = choose_protocol(settings.assignors)
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, roll)
        self._outbox = outbox = Outbox()
        self._membership = membership = Membership(outbox)
        self._search = search = CoordinatorSearch(
            settings,
            outbox,
            backoff,
            found=self._on_found,
            lost=self._on_lost,
            refused=self._on_search_refused,
        )
        self._liveness = Liveness(settings, outbox, backoff, membership, search)
        self._commits = Commits(settings, outbox, backoff, membership, search)
        self._questions = CommittedOffsets(settings, outbox, backoff, search)
        self._auto_commit = AutoCommit(settings, outbox, membership, self._commits)
        self._program = Program(settings, outbox, membership)
        self._handover = Handover(settings, outbox, self._program, self._commits)
        self._joining = Joining(
            settings,
            outbox,
            backoff,
            membership,
            search,
            protocol=protocol,
            liveness=self._liveness,
        )
        self._rebalancing = Rebalancing(
            membership, self._program, search, self._joining, self._handover, protocol=protocol
        )
        self._leaving = Leaving(
            settings,
            outbox,
            membership,
            search,
            program=self._program,
            handover=self._handover,
            commits=self._commits,
            gone=self._on_gone,
        )

    # Looking at it

    @property
    def group_id(self) -> GroupId:
        return self._settings.group_id

    @property
    def member_id(self) -> MemberId:
        return self._membership.standing.member_id

    @property
    def generation(self) -> Generation:
        return self._membership.standing.generation

    @property
    def state(self) -> MemberState:
        return self._membership.state

    @property
    def held(self) -> frozenset[TopicPartition]:
        return self._membership.held

    @property
    def coordinator(self) -> Broker | None:
        return self._search.coordinator

    def deadline(self) -> Millis | None:
        """When to send it Woken, if nothing else happens before."""
        moments = (
            self._search.due() if self._wants_coordinator else None,
            self._liveness.due(),
            self._program.due(),
            self._membership.retry_at if self.state is MemberState.PREPARING else None,
            self._commits.due(),
            self._questions.due(),
            self._auto_commit.due(),
        )
        return min((each for each in moments if each is not None), default=None)

    # Being told

    def handle(self, event: Event, now: Millis) -> list[Effect]:
        if self.state is MemberState.ENDED:
            self._decline(event)
        else:
            self._dispatch(event, now)
            self._settle(now)
            self._program.depart()
        return self._outbox.take()

    def _dispatch(self, event: Event, now: Millis) -> None:  # noqa: C901  # a flat table
        match event:
            case Subscribed():
                self._on_subscribed(event.topics)
            case Unsubscribed():
                self._leaving.unsubscribe(now)
            case Polled():
                self._on_polled(now)
            case PositionsTold():
                if not self._handover.take(event.positions):
                    self._auto_commit.take(event.positions, now)
            case CallbackReturned():
                self._on_returned(now)
            case CommitAsked():
                self._search.resume()
                self._commits.ask(event.question, event.positions, now)
            case CommittedAsked():
                self._search.resume()
                self._questions.ask(event.question, event.partitions, now)
            case Withdrawn():
                self._commits.withdraw(event.question)
                self._questions.withdraw(event.question)
            case RejoinAsked():
                if self._membership.topics is not None:
                    reason = event.reason or "rebalance enforced by user"
                    self._membership.request_rejoin(reason, now)
            case Closed():
                self._leaving.close(now)
            case Answered():
                self._outbox.answer(event.number, event.body, now)
            case Unanswered():
                self._outbox.answer(event.number, event.loss, now)
            case TopicsSeen():
                self._joining.see(event.partitions)
            case Woken():
                pass
            case _:
                assert_never(event)

    def _settle(self, now: Millis) -> None:
        """Do all that can be done now."""
        if self._program.is_overdue(now):
            self._leaving.leave_stuck(now)
        self._program.look(now)
        self._liveness.check(now)
        self._commits.flush(now)
        self._questions.flush(now)
        self._rebalancing.advance(now)
        self._leaving.advance(now)
        self._liveness.beat(now)
        self._auto_commit.tick(now)
        if self._wants_coordinator:
            self._search.look(now)

    @property
    def _wants_coordinator(self) -> bool:
        membership = self._membership
        is_joining = membership.state is MemberState.PREPARING
        is_in = membership.is_joined and membership.state is not MemberState.LEAVING
        return is_joining or is_in or self._commits.is_waiting or self._questions.is_waiting

    # The program

    def _on_subscribed(self, topics: frozenset[Topic]) -> None:
        if not self._settings.assignors:
            self._outbox.say(Failed(error=WrongUse("without an assignor nobody can subscribe")))
        elif self.state is MemberState.LEAVING:
            self._leaving.subscribe_after(topics)
        else:
            self._membership.topics = topics
            self._joining.watch_own(topics)

    def _on_polled(self, now: Millis) -> None:
        membership = self._membership
        self._program.arrive(now)
        self._search.resume()
        self._auto_commit.start(now)
        is_new = membership.topics is not None and membership.joined_topics is None
        if is_new and membership.rejoin is None:
            membership.request_rejoin("the consumer has subscribed", now)

    def _on_returned(self, now: Millis) -> None:
        call = self._program.hear_back(now)
        self._program.arrive(now)
        if call is not None:
            self._rebalancing.hear_back(call, now)
            if call.change is Change.ASSIGNED:
                self._auto_commit.restart(now)

    def _on_gone(self) -> None:
        """It has left the group, or is closed for good."""
        self._joining.forget_group()
        if self.state is MemberState.ENDED:
            self._questions.refuse_all(WrongUse("the consumer is closed"))
            self._outbox.say(Ended())
        else:
            self._joining.watch_own(self._membership.topics or frozenset())

    def _decline(self, event: Event) -> None:
        """After the end questions are answered still, and nothing else is heard."""
        error = WrongUse("the consumer is closed")
        if isinstance(event, CommitAsked):
            self._outbox.say(Committed(question=event.question, error=error))
        elif isinstance(event, CommittedAsked):
            self._outbox.say(CommittedTold(question=event.question, positions={}, error=error))

    # The coordinator

    def _on_found(self, now: Millis) -> None:
        self._liveness.extend(now)

    def _on_search_refused(self, error: ConsumerError, now: Millis) -> None:
        self._commits.refuse_all(error)
        self._questions.refuse_all(error)
        if self.state is MemberState.PREPARING:
            self._membership.fail(error, now)
        elif self._membership.is_joined and self.state is not MemberState.LEAVING:
            self._outbox.say(Failed(error=error))

    def _on_lost(self, now: Millis) -> None:
        self._liveness.forget()
        if self._membership.attempt is not None:
            self._joining.give_up(now)
