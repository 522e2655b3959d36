"""A small world in memory: members, the programs they work for, and the real coordinator.

Time is a number, the network a delay; members and coordinator are the ones that ship. Programs
poll, work, and keep account of what they read, so that a record read twice is found out.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from kohort.client.errors import ConsumerError
from kohort.client.member.effects import (
    AutoCommitted,
    AwaitPoll,
    Broker,
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
    CallbackReturned,
    Closed,
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
    Unsubscribed,
    Woken,
)
from kohort.client.member.machine import Member, MemberSettings, MemberState
from kohort.client.rebalances import Rebalance
from kohort.client.topic_partition import TopicPartition
from kohort.coordinator.commands import Ticket, TimerFired
from kohort.coordinator.limits import Limits
from kohort.coordinator.outcome import Outcome
from kohort.types import BrokerId, ErrorCode, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from tests.client.translating import command_of, refusal_of, response_of
from tests.coordinator.driver import Driver

BROKER = Broker(node_id=BrokerId(1), host="h", port=9092)


@dataclass
class World:
    seed: int
    topics: dict[Topic, int]
    limits: Limits = field(default_factory=Limits)
    now: Millis = Millis(0)
    is_coordinator_up: bool = True
    given_up: dict[TopicPartition, Offset] = field(default_factory=dict)
    """How far whoever gave up a partition last had read it."""
    reread: list[str] = field(default_factory=list)
    """Where somebody did not begin where another had ended."""

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)  # noqa: S311  # drawn again from the same seed
        self.coordinator = Driver(self.limits)
        self.programs: list[Program] = []
        self._heap: list[tuple[Millis, int, Callable[[], None]]] = []
        self._order = count()
        self._asked: dict[Ticket, tuple[Any, Callable[[object], None]]] = {}
        self._tickets = count(1)
        self._replied = 0

    # Time

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (Millis(self.now + delay_ms), next(self._order), action))

    def run(self, for_ms: int) -> None:
        """Let time pass: messages arrive, timers fire, programs go about their work."""
        until = Millis(self.now + for_ms)
        while True:
            timer = min(self.coordinator.timers.values(), default=None)
            moments = [] if timer is None else [timer]
            moments += [self._heap[0][0]] if self._heap else []
            at = min(moments, default=None)
            if at is None or at > until:
                break
            self.now = max(self.now, at)
            self.coordinator.now = self.now
            if timer is not None and timer <= self.now:
                key = min(key for key, due in self.coordinator.timers.items() if due <= self.now)
                del self.coordinator.timers[key]
                self._release(self.coordinator.decide(TimerFired(key=key)))
            else:
                heapq.heappop(self._heap)[2]()
        self.now = until
        self.coordinator.now = until

    def delay(self) -> int:
        return self.dice.randint(1, 20)

    # The broker

    def carry(self, body: Any, client_id: str, then: Callable[[object], None]) -> None:
        """A request arrives; `then` takes the response, whenever there is one."""
        if isinstance(body, FindCoordinatorRequest):
            then(self._where())
        elif not self.is_coordinator_up:
            then(refusal_of(body, ErrorCode.NOT_COORDINATOR))
        else:
            ticket = Ticket(next(self._tickets))
            self._asked[ticket] = (body, then)
            fresh = MemberId(f"{client_id}-{ticket}")
            self._release(self.coordinator.decide(command_of(body, ticket, client_id, fresh)))

    def _where(self) -> FindCoordinatorResponse:
        error = ErrorCode.NONE if self.is_coordinator_up else ErrorCode.COORDINATOR_NOT_AVAILABLE
        named = Coordinator(key="g", node_id=BROKER.node_id, host="h", port=9092, error_code=error)
        return FindCoordinatorResponse(coordinators=(named,))

    def _release(self, outcome: Outcome) -> None:
        for reply in outcome.replies:
            body, then = self._asked.pop(reply.ticket)
            then(response_of(body, reply))

    def crash_coordinator(self) -> None:
        """Whoever waits hears nothing; what was kept is there again at once."""
        self._asked.clear()
        self.coordinator.crash()
        for program in self.programs:
            program.disconnect()

    # Looking at it

    @property
    def alive(self) -> "list[Program]":
        return [each for each in self.programs if each.is_alive]

    @property
    def is_settled(self) -> bool:
        """Everyone is stable in one generation, and each partition is held once."""
        members = [each.member for each in self.alive if each.topics is not None]
        held = [at for member in members for at in member.held]
        everything = {
            TopicPartition(topic, Partition(n))
            for topic, size in self.topics.items()
            for n in range(size)
        }
        return (
            all(member.state is MemberState.STABLE for member in members)
            and len({member.generation for member in members}) <= 1
            and len(held) == len(set(held))
            and (set(held) == everything or not members)
        )

    def settle(self, within_ms: int = 300_000) -> None:
        """Wait until it is settled and stays so."""
        ends = self.now + within_ms
        while self.now < ends:
            self.run(500)
            if self.is_settled:
                self.run(10_000)
                if self.is_settled:
                    return
        states = [
            (each.name, each.member.state, each.member.generation, sorted(each.member.held))
            for each in self.alive
        ]
        raise AssertionError(f"not settled: {states}")


@dataclass
class Way:
    """One direction of a connection: nothing overtakes."""

    clear_at: int = 0

    def delay(self, world: World) -> int:
        self.clear_at = max(self.clear_at, world.now + world.delay())
        return self.clear_at - world.now


@dataclass
class Program:
    """What a face and a program's loop do, in one: poll, work, poll again."""

    world: World
    name: str
    settings: MemberSettings
    topics: frozenset[Topic] | None
    work_ms_max: int = 400

    def __post_init__(self) -> None:
        self.member = Member(self.settings, self.world.dice.random)
        self.is_alive = True
        self.is_closing = False
        self.is_in_poll = False
        self.call: Call | None = None
        self.leaving: frozenset[TopicPartition] = frozenset()
        self.positions: dict[TopicPartition, Offset] = {}
        """The next offset to hand out."""
        self.done: dict[TopicPartition, Offset] = {}
        """The next offset it has not done with."""
        self.kept: dict[TopicPartition, Offset] = {}
        self.waiting: dict[int, Send] = {}
        self.rebalances: list[Rebalance] = []
        self.failures: list[ConsumerError] = []
        self.calls: list[Call] = []
        self._watched: frozenset[Topic] = frozenset()
        self._wake_at: Millis | None = None
        self._questions = count(1)
        self._way_there, self._way_back = Way(), Way()
        self._sought: dict[Question, frozenset[TopicPartition]] = {}
        if self.topics is not None:
            self.feed(Subscribed(topics=self.topics))
        self.world.programs.append(self)
        self.world.later(self.world.delay(), self.poll)

    # Its loop

    def poll(self) -> None:
        if not self.is_alive or self.is_closing:
            return
        self.is_in_poll = True
        self.done.update(self.positions)
        self.feed(Polled())
        self.world.later(self.world.delay(), self.leave_poll)

    def leave_poll(self) -> None:
        if not self.is_alive or self.is_closing:
            return
        if self.call is not None:
            self.world.later(self.world.delay(), self.leave_poll)
            return
        self.is_in_poll = False
        for at in self.member.held - self.leaving:
            if at in self.positions:
                self.positions[at] = Offset(self.positions[at] + self.world.dice.randint(0, 5))
        self.world.later(self.world.dice.randint(0, self.work_ms_max), self.poll)

    def close(self) -> None:
        self.is_closing = True
        self.done.update(self.positions)
        self.feed(Closed())
        self._hear_calls()

    def unsubscribe(self) -> None:
        self.topics = None
        self.feed(Unsubscribed())
        self._hear_calls()

    def crash(self) -> None:
        self.is_alive = False
        self.waiting.clear()

    def disconnect(self) -> None:
        for number in list(self.waiting):
            self._lose(number, Loss.DISCONNECTED)

    # Its face

    def feed(self, event: Event) -> None:
        before = self.member.held
        for effect in self.member.handle(event, self.world.now):
            self._carry_out(effect)
        for gone in before - self.member.held:
            self.positions.pop(gone, None)
            self.done.pop(gone, None)
            self.kept.pop(gone, None)
        self._set_alarm()

    def _carry_out(self, effect: Effect) -> None:  # noqa: C901  # a flat table
        match effect:
            case Send():
                self._send(effect)
            case Call():
                assert self.call is None, f"{self.call} is under way"
                self.call = effect
                self.world.later(self.world.delay(), self._hear_calls)
            case AwaitPoll():
                self.world.later(0, self._say_polled)
            case TellPositions():
                self.leaving |= effect.leaving
                self.world.later(0, self._tell_positions)
            case WatchTopics():
                self._watched = effect.topics
                self.world.later(self.world.delay(), self.look_around)
            case AutoCommitted() if effect.error is None:
                self.kept |= {at: told.offset for at, told in effect.positions.items()}
            case Told():
                self.rebalances.append(effect.rebalance)
            case Failed():
                self.failures.append(effect.error)
            case CommittedTold():
                self._begin_at(effect)
            case Ended():
                self.is_alive = False
            case AutoCommitted() | Committed():
                pass

    def _feed_if_alive(self, event: Event) -> None:
        if self.is_alive:
            self.feed(event)

    def _tell_positions(self) -> None:
        moved = {
            at: Position(offset=offset)
            for at, offset in self.done.items()
            if offset > self.kept.get(at, 0)
        }
        self._feed_if_alive(PositionsTold(positions=moved))

    def _say_polled(self) -> None:
        if self.is_alive and self.is_in_poll:
            self.done.update(self.positions)
            self.feed(Polled())

    def look_around(self) -> None:
        seen = {topic: n for topic, n in self.world.topics.items() if topic in self._watched}
        self._feed_if_alive(TopicsSeen(partitions=seen))

    def _hear_calls(self) -> None:
        """As a program does in poll, in unsubscribe and in close."""
        while self.is_alive and self.call is not None:
            call, self.call = self.call, None
            self.calls.append(call)
            if call.change is Change.ASSIGNED:
                self._ask_where(call.partitions)
            for at in call.partitions & self.positions.keys():
                self.world.given_up[at] = self.positions[at]
            self.feed(CallbackReturned())
            if call.change is not Change.ASSIGNED:
                self.leaving -= call.partitions

    def _ask_where(self, partitions: frozenset[TopicPartition]) -> None:
        if not partitions:
            return
        question = Question(next(self._questions))
        self._sought[question] = partitions
        self.feed(CommittedAsked(question=question, partitions=partitions))

    def _begin_at(self, told: CommittedTold) -> None:
        for at in self._sought.pop(told.question):
            found = told.positions.get(at)
            offset = Offset(0) if found is None else found.offset
            if at in self.member.held and at not in self.positions and told.error is None:
                self.positions[at] = self.done[at] = self.kept[at] = offset
                ended = self.world.given_up.get(at, Offset(0))
                if offset != ended:
                    self.world.reread.append(f"{self.name}: {at} from {offset}, not {ended}")

    def _set_alarm(self) -> None:
        due = self.member.deadline()
        if due is None or not self.is_alive:
            return
        if self._wake_at is None or due < self._wake_at or self._wake_at <= self.world.now:
            self._wake_at = due
            self.world.later(max(0, due - self.world.now), self._wake)

    def _wake(self) -> None:
        due = self.member.deadline()
        self._wake_at = None
        if self.is_alive and due is not None:
            if due <= self.world.now:
                self.feed(Woken())
                after = self.member.deadline()
                assert after is None or after > self.world.now, f"{self.name} would never sleep"
            self._set_alarm()

    # Its network

    def _send(self, send: Send) -> None:
        world = self.world
        self.waiting[send.number] = send

        def arrive() -> None:
            world.carry(send.body, self.name, respond)

        def respond(body: object) -> None:
            world.later(self._way_back.delay(world), lambda: self._hear(send.number, body))

        # Joins and syncs travel beside the others, which keep their order.
        is_slow = isinstance(send.body, JoinGroupRequest | SyncGroupRequest)
        world.later(world.delay() if is_slow else self._way_there.delay(world), arrive)
        world.later(send.timeout_ms, lambda: self._lose(send.number, Loss.TIMED_OUT))

    def _hear(self, number: int, body: object) -> None:
        send = self.waiting.pop(number, None)
        if send is not None and self.is_alive:
            self.feed(Answered(number=send.number, body=body))

    def _lose(self, number: int, loss: Loss) -> None:
        send = self.waiting.pop(number, None)
        if send is not None and self.is_alive:
            self.feed(Unanswered(number=send.number, loss=loss))
