"""All that acts for a program between its calls: member, cluster, positions and fetches together.

It knows no socket, no thread and no clock: events, answers and the time come in, requests leave
through the post, and what the program must do or hear is kept until it comes. Whoever calls it
holds the one lock there is.
"""

from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias, assert_never

from kohort.client import diary
from kohort.client.backoff import Backoff
from kohort.client.errors import ConsumerError, UnsupportedBroker
from kohort.client.fetching.fetcher import Fetcher
from kohort.client.fetching.lookups import Lookups
from kohort.client.fetching.positions import OnCommitted, Positions
from kohort.client.fetching.subscription import Subscription, Wish
from kohort.client.history import History
from kohort.client.member.effects import (
    AutoCommitted,
    AwaitPoll,
    Call,
    Change,
    Committed,
    CommittedTold,
    Effect,
    Ended,
    Failed,
    Send,
    TellPositions,
    Told,
    WatchTopics,
)
from kohort.client.member.events import (
    Answered,
    Closed,
    CommitAsked,
    CommittedAsked,
    Event,
    Loss,
    Polled,
    Position,
    PositionsTold,
    Question,
    Subscribed,
    TopicsSeen,
    Unanswered,
    Withdrawn,
    Woken,
)
from kohort.client.member.machine import Member, MemberState
from kohort.client.network.cluster import Cluster
from kohort.client.network.post import Post
from kohort.client.network.requests import Answer
from kohort.client.options import Options, member_settings
from kohort.client.rebalances import Rebalance
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis, Topic

OnCommit: TypeAlias = Callable[[ConsumerError | None], None]


class Agent:
    def __init__(self, options: Options, roll: Callable[[], float]) -> None:
        self._options = options
        backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms, roll)
        self.post = post = Post()
        self.history = History()
        self.subscription = subscription = Subscription()
        self.cluster = cluster = Cluster(options, backoff)
        self.lookups = lookups = Lookups(options, cluster, post, backoff)
        self.positions = positions = Positions(
            options=options,
            subscription=subscription,
            cluster=cluster,
            lookups=lookups,
            post=post,
            backoff=backoff,
            ask_committed=None if options.group_id is None else self.ask_committed,
        )
        self.fetcher = Fetcher(
            options=options,
            subscription=subscription,
            cluster=cluster,
            positions=positions,
            post=post,
            backoff=backoff,
        )
        self.member: Member | None = None
        if options.group_id is not None:
            self.member = Member(member_settings(options), roll)
        self.call: Call | None = None
        """What the listener must hear next."""
        self.is_ended = False
        """Whether the member has said all it had to say."""
        self.is_resting = False
        """Whether the program waits in poll, and holds nothing that it has not done with."""
        self.asked_topics: frozenset[Topic] = frozenset()
        """Of which the program wants to know, beside those it reads."""
        self.is_asking_all_topics = False
        self.unsupported: UnsupportedBroker | None = None
        """Why some question will never be answered."""
        self.news = 0
        """Counts what the program may wait for."""
        self._failure: ConsumerError | None = None
        self._events: deque[Event] = deque()
        self._is_telling = False
        self._now = Millis(0)
        self._questions: dict[Question, Callable[[Any], None]] = {}
        self._numbers = count(1)
        self._watched: frozenset[Topic] = frozenset()
        """By the member: for a leader, what all the group wants."""
        self._is_matched = False
        """Whether the group knows what the pattern matches, be it nothing."""
        self._seen: dict[Topic, int] | None = None
        """What it was last told of them."""

    # The clock

    def advance(self, now: Millis) -> None:
        """Do all that is due, or has become possible."""
        self.news += 1
        if self.member is not None:
            due = self.member.deadline()
            if due is not None and now >= due:
                self.tell(Woken(), now)
        # Each may find out that those below it have something to do.
        self.fetcher.advance(now)
        self.positions.advance(now)
        self.lookups.advance(now)
        self._watch()
        due = self.cluster.due()
        if due is not None and now >= due:
            self.post.send(
                self.cluster.ask(), None, self._options.request_timeout_ms, self._on_metadata
            )

    def deadline(self) -> Millis | None:
        moments = (
            None if self.member is None else self.member.deadline(),
            self.cluster.due(),
            self.lookups.due(),
            self.positions.due(),
            self.fetcher.due(),
        )
        return min((each for each in moments if each is not None), default=None)

    # The program

    def polled(self, now: Millis) -> None:
        """The program is in poll: it has done with all it was given."""
        self.subscription.finish()
        if self.member is not None:
            self.tell(Polled(), now)

    def take_failure(self) -> ConsumerError | None:
        """What the program must hear now. What is still wrong then will be said again."""
        failure = self.unsupported or self._failure or self.cluster.fault
        self.unsupported = self._failure = self.cluster.fault = None
        return failure or self.subscription.fault

    def hear_call(self, call: Call) -> None:
        """The listener is about to hear of it."""
        self.call = None
        if call.change is Change.ASSIGNED:
            self.subscription.add(call.partitions)
            # What was about to go when the group began anew, and is here still, stays.
            for state in self.subscription.states.values():
                state.is_leaving = False

    def commit(
        self, positions: Mapping[TopicPartition, Position], then: OnCommit, now: Millis
    ) -> Question:
        question = Question(next(self._numbers))
        self.subscription.finish_at(positions)

        def answered(effect: Committed) -> None:
            if effect.error is None:
                self.subscription.keep(positions)
            then(effect.error)

        self._questions[question] = answered
        self.tell(CommitAsked(question=question, positions=positions), now)
        return question

    def ask_committed(
        self, partitions: frozenset[TopicPartition], then: OnCommitted, now: Millis
    ) -> Question:
        question = Question(next(self._numbers))

        def answered(effect: CommittedTold) -> None:
            then(effect.positions, effect.error, self._now)

        self._questions[question] = answered
        self.tell(CommittedAsked(question=question, partitions=partitions), now)
        return question

    def withdraw(self, question: Question, now: Millis) -> None:
        self._questions.pop(question, None)
        self.tell(Withdrawn(question=question), now)

    def subscribe(self, topics: frozenset[Topic], now: Millis) -> None:
        self.subscription.topics = topics
        self.tell(Subscribed(topics=topics), now)

    def subscribe_to_matches(self, now: Millis) -> None:
        """The group hears of it once it is known what the pattern matches."""
        self._is_matched = False
        if self.cluster.is_all_covered:
            self._match(now)

    @property
    def can_commit(self) -> bool:
        """Not between two generations: whatever is committed there is refused."""
        return self.member is None or self.member.state not in (
            MemberState.JOINING,
            MemberState.SYNCING,
        )

    def close(self, now: Millis) -> None:
        if self.member is None:
            self.is_ended = True
        else:
            self.tell(Closed(), now)

    # The member

    def tell(self, event: Event, now: Millis) -> None:
        """What is said in answer to an event is done before the next one is told."""
        assert self.member is not None
        self._now = now
        self.news += 1
        self._events.append(event)
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._events:
                for effect in self.member.handle(self._events.popleft(), now):
                    self._do(effect)
        finally:
            self._is_telling = False

    def _do(self, effect: Effect) -> None:  # noqa: C901  # a flat table
        match effect:
            case Send():
                self._send(effect)
            case Call():
                self._prepare_call(effect)
            case AwaitPoll():
                if self.is_resting:
                    self._events.append(Polled())
            case TellPositions():
                self._hold_back(effect.leaving)
                self._events.append(PositionsTold(positions=self.subscription.done_with()))
            case WatchTopics():
                self._watched = effect.topics
                self._seen = None
                self._watch()
                self._tell_topics()
            case Committed() | CommittedTold():
                answered = self._questions.pop(effect.question, None)
                if answered is not None:
                    answered(effect)
            case AutoCommitted():
                self._on_auto_committed(effect)
            case Told():
                self._remember(effect.rebalance)
            case Failed():
                self._failure = effect.error
            case Ended():
                self.is_ended = True
            case _:
                assert_never(effect)

    def _send(self, effect: Send) -> None:
        def then(answer: Answer, now: Millis) -> None:
            if isinstance(answer, Loss):
                self.tell(Unanswered(number=effect.number, loss=answer), now)
            else:
                self.tell(Answered(number=effect.number, body=answer), now)

        self.post.send(effect.body, effect.broker, effect.timeout_ms, then)

    def _prepare_call(self, call: Call) -> None:
        self.call = call
        if call.change is not Change.ASSIGNED:
            self._hold_back(call.partitions)

    def _hold_back(self, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            state = self.subscription.states.get(partition)
            if state is not None:
                state.is_leaving = True

    def _on_auto_committed(self, effect: AutoCommitted) -> None:
        if effect.error is None:
            self.subscription.keep(effect.positions)
        elif not effect.error.is_retriable:
            diary.warn(
                "commit-failed",
                group=self._options.group_id,
                partitions=len(effect.positions),
                reason=effect.error,
            )

    def _remember(self, rebalance: Rebalance) -> None:
        self.history.add(rebalance)
        diary.note(
            "rebalanced",
            group=self._options.group_id,
            member=rebalance.member_id,
            generation=rebalance.generation,
            reason=rebalance.reason,
            ending=rebalance.ending,
            assigned=len(rebalance.assigned),
            added=len(rebalance.added),
            revoked=len(rebalance.revoked),
        )

    # The cluster

    def _watch(self) -> None:
        """See to it that what must be known is asked for."""
        subscription = self.subscription
        topics = self._watched | self.lookups.topics() | self.asked_topics
        if subscription.wish is Wish.PARTITIONS:
            topics |= {partition.topic for partition in subscription.states}
        else:
            topics |= subscription.topics
        is_all = subscription.wish is Wish.PATTERN or self.is_asking_all_topics
        self.cluster.watch(topics, is_all=is_all)

    def _on_metadata(self, answer: Answer, now: Millis) -> None:
        if isinstance(answer, Loss):
            self.cluster.miss(now)
            return
        self.cluster.learn(answer, now)
        self.lookups.hurry()
        if self.subscription.wish is Wish.PATTERN:
            self._match(now)
        self._tell_topics()
        if self.member is not None:
            self.tell(Woken(), now)

    def _match(self, now: Millis) -> None:
        internal = {name: known.is_internal for name, known in self.cluster.topics.items()}
        exclude = self._options.exclude_internal_topics
        topics = self.subscription.match(internal, exclude_internal=exclude)
        if topics != self.subscription.topics or not self._is_matched:
            self._is_matched = True
            self.subscribe(topics, now)
            if self.is_resting:
                self.tell(Polled(), now)

    def _tell_topics(self) -> None:
        """The member hears of its topics once they were asked about, and whenever they change."""
        if self.member is None or not self.cluster.covers(self._watched):
            return
        seen = self.cluster.partition_counts(self._watched)
        if seen != self._seen:
            self._seen = seen
            self._events.append(TopicsSeen(partitions=seen))
