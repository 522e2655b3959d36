"""One process of a member: the real Member, and whatever carries out what it wants.

The other half, the program that polls and works, is in `program`. Everything the member is told
and wants done passes through here, one event after the other.
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import assert_never

from kohort.client.assignors import get_assignor
from kohort.client.member.effects import (
    AutoCommitted,
    AwaitPoll,
    Call,
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
    Event,
    PositionsTold,
    TopicsSeen,
    Unanswered,
    Woken,
)
from kohort.client.member.events import Loss as MemberLoss
from kohort.client.member.machine import Member, MemberSettings, MemberState
from kohort.client.topic_partition import TopicPartition
from kohort.sim.court import Belief, Worker
from kohort.sim.life import Life, Reminder
from kohort.sim.phone import Loss
from kohort.sim.plan import Commits, MemberPlan
from kohort.sim.reader import Reader
from kohort.sim.showing import show_answer, show_partition, show_partitions, show_request
from kohort.sim.stage import Stage
from kohort.types import GroupId, InstanceId, Millis, Topic
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.wire.embedded import decode_assignment

_HAUNTING = (OffsetCommitRequest, SyncGroupRequest, HeartbeatRequest)

_METADATA_MS = 2_500
"""How long a process trusts what it knows of topics."""


class Listener:
    """What the program is told."""

    def __init__(self) -> None:
        self.on_call: Callable[[Call], None] = _ignore
        self.on_committed: Callable[[Committed], None] = _ignore
        self.on_positions: Callable[[CommittedTold], None] = _ignore
        self.on_await: Callable[[], None] = _nothing
        self.on_failed: Callable[[Failed], None] = _ignore
        self.on_ended: Callable[[], None] = _nothing
        self.on_news: Callable[[], None] = _nothing


def _ignore(_: object) -> None: ...


def _nothing() -> None: ...


class End(StrEnum):
    """How a process comes to its end."""

    CRASHED = "crashed"
    VANISHED = "vanished"
    CLOSED = "closed"
    FENCED = "fenced"


class Consumer:
    def __init__(self, stage: Stage, plan: MemberPlan, number: int) -> None:
        self._stage = stage
        self.plan = plan
        self.name = f"{plan.name}/{number}"
        self.life = Life(stage.timeline)
        self.listener = Listener()
        self.reader = Reader(stage, self.life, self.name, plan, self._on_news)
        self.topics: frozenset[Topic] = frozenset()
        chance = stage.dice.named("member", self.name)
        self.member = Member(_settings(plan), chance.random)
        self._talking = stage.phone(self.life, plan.name, is_old=plan.is_old)
        self._joining = stage.phone(self.life, plan.name, is_old=plan.is_old)
        self._looking = stage.phone(self.life, plan.name, is_old=plan.is_old)
        self._events: deque[Event] = deque()
        self._is_handling = False
        self._belief: dict[TopicPartition, int] = {}
        self._dealt: dict[TopicPartition, int] = {}
        """The last generation that gave it each partition."""
        self._is_dealt_anew = False
        self._alarm: tuple[Millis, Reminder] | None = None
        self._watched: frozenset[Topic] = frozenset()
        self._seen: dict[Topic, int] | None = None
        self.on_end: Callable[[], None] = _nothing
        self.said: list[object] = []
        """The requests of which somebody may make a ghost."""
        stage.trace.tell(self.name, "start", f"group={plan.group}", *plan.assignors)

    @property
    def is_stable(self) -> bool:
        return self.member.state is MemberState.STABLE

    def worker_at(self, partition: TopicPartition) -> Worker:
        """By the generation in which it was given the partition.

        It may have joined a later one and not know yet what that one gives to whom.
        """
        return Worker(
            process=self.name,
            group=self.plan.group,
            generation=self._dealt.get(partition, -1),
            member_id=self.member.member_id,
        )

    def end(self, end: End) -> None:
        if not self.life.is_running:
            return
        self.life.end()
        self._stage.court.ended(self.name)
        self._stage.trace.tell(self.name, "ends", end)
        is_vanishing = end is End.VANISHED
        self.reader.end(is_vanishing=is_vanishing)
        for phone in (self._talking, self._joining, self._looking):
            phone.vanish() if is_vanishing else phone.hang_up()
        self.on_end()

    # Telling the member

    def tell(self, event: Event) -> None:
        """Events wait for one another: what one leads to comes after it is done with."""
        self._events.append(event)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events and self.life.is_running:
                for effect in self.member.handle(self._events.popleft(), self._now):
                    self._carry_out(effect)
                self._observe()
        finally:
            self._is_handling = False
        if self.life.is_running:
            self._set_alarm()
            self.listener.on_news()

    @property
    def _now(self) -> Millis:
        return Millis(self._stage.timeline.now_ms)

    def _observe(self) -> None:
        held = self.member.held
        if held == self._belief.keys() and not self._is_dealt_anew:
            return
        self._is_dealt_anew = False
        belief = {at: self._dealt.get(at, -1) for at in sorted(held)}
        if belief == self._belief:
            return
        self._belief = belief
        shown = ",".join(f"{show_partition(at)}#{by}" for at, by in self._belief.items())
        self._stage.trace.tell(self.name, "holds", shown or "nothing")
        self._stage.court.believes(
            self.name,
            Belief(group=self.plan.group, instance_id=self.plan.instance_id, held=self._belief),
        )

    def _on_dealt(self, asked: SyncGroupRequest, answer: object) -> None:
        """An assignment has come: by which generation something is held is what it says."""
        if isinstance(answer, SyncGroupResponse) and not answer.error_code and answer.assignment:
            self._is_dealt_anew = True
            for topic in decode_assignment(answer.assignment).assigned_partitions:
                for index in topic.partitions:
                    self._dealt[TopicPartition(topic.topic, index)] = asked.generation_id

    def _set_alarm(self) -> None:
        deadline = self.member.deadline()
        if self._alarm is not None:
            if self._alarm[0] == deadline:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if deadline is not None:
            delay_ms = max(0, deadline - self._now)
            self._alarm = deadline, self.life.later(delay_ms, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.tell(Woken())

    def _on_news(self) -> None:
        self.listener.on_news()

    # What the member wants

    def _carry_out(self, effect: Effect) -> None:  # noqa: C901  # a flat table
        trace, listener = self._stage.trace, self.listener
        match effect:
            case Send():
                self._send(effect)
            case Call():
                trace.tell(self.name, "call", effect.change, show_partitions(effect.partitions))
                listener.on_call(effect)
            case AwaitPoll():
                listener.on_await()
            case TellPositions():
                if effect.leaving:
                    self.reader.hold_back(effect.leaving)
                self._events.append(PositionsTold(positions=self.reader.unsaved()))
            case WatchTopics():
                self._watch(effect.topics)
            case Committed():
                trace.tell(self.name, "committed", "by-hand", effect.error or "")
                listener.on_committed(effect)
            case CommittedTold():
                listener.on_positions(effect)
            case AutoCommitted():
                trace.tell(self.name, "committed", "by-itself", effect.error or "")
                if effect.error is None:
                    self.reader.saved(effect.positions)
            case Told():
                rebalance = effect.rebalance
                trace.tell(self.name, "told", rebalance.ending, f"because={rebalance.reason!r}")
            case Failed():
                trace.tell(self.name, "fails", effect.error)
                listener.on_failed(effect)
            case Ended():
                listener.on_ended()
            case _:
                assert_never(effect)

    def _send(self, send: Send) -> None:
        phone = self._joining if isinstance(send.body, JoinGroupRequest) else self._talking
        trace, name = self._stage.trace, self.name
        if isinstance(send.body, _HAUNTING):
            self.said.append(send.body)
        if trace.is_read:
            trace.tell(name, "asks", f"#{send.number}", show_request(send.body))

        def answer(body: object) -> None:
            if trace.is_read:
                trace.tell(name, "answer", f"#{send.number}", show_answer(body))
            if isinstance(send.body, SyncGroupRequest):
                self._on_dealt(send.body, body)
            self.tell(Answered(number=send.number, body=body))

        def lose(loss: Loss) -> None:
            trace.tell(name, "lost", f"#{send.number}", loss)
            self.tell(Unanswered(number=send.number, loss=MemberLoss(loss)))

        phone.ask(send.body, send.timeout_ms, answer, lose)

    # Topics

    def _watch(self, topics: frozenset[Topic]) -> None:
        self._watched = topics
        self._seen = None
        self._look()

    def _look(self) -> None:
        if not self._watched or not self._looking.is_idle:
            return
        topics = self._watched
        body = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=topic) for topic in sorted(topics)),
            allow_auto_topic_creation=False,
        )
        self._looking.ask(
            body,
            self.plan.request_ms,
            lambda answer: self._on_seen(topics, answer),
            lambda _: self._look_later(200),
        )

    def _on_seen(self, asked: frozenset[Topic], answer: MetadataResponse) -> None:
        if asked != self._watched:
            self._look()
            return
        seen = {
            topic.name: len(topic.partitions)
            for topic in answer.topics
            if topic.name is not None and not topic.error_code
        }
        if seen != self._seen:
            self._seen = seen
            self.tell(TopicsSeen(partitions=seen))
        self._look_later(_METADATA_MS)

    def _look_later(self, delay_ms: int) -> None:
        self.life.later(delay_ms, self._look)


def _settings(plan: MemberPlan) -> MemberSettings:
    return MemberSettings(
        group_id=GroupId(plan.group),
        instance_id=InstanceId(plan.instance_id) if plan.instance_id is not None else None,
        assignors=tuple(get_assignor(name) for name in plan.assignors),
        session_timeout_ms=Millis(plan.session_ms),
        heartbeat_interval_ms=Millis(plan.heartbeat_ms),
        max_poll_interval_ms=Millis(plan.max_poll_ms),
        request_timeout_ms=Millis(plan.request_ms),
        default_api_timeout_ms=Millis(2 * plan.request_ms),
        retry_backoff_ms=Millis(50),
        retry_backoff_max_ms=Millis(500),
        enable_auto_commit=plan.commits is Commits.AUTO,
        auto_commit_interval_ms=Millis(plan.commit_interval_ms),
    )
