"""An in-memory cluster: real members, simulated applications and the real coordinator.

Time is a number and the network a delay. Applications track what they read, so that a record that
is read twice is found.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from kohort.client.errors import ConsumerError
from kohort.client.member.effects import (
    AssignmentChange,
    AutoCommitCompleted,
    AwaitPoll,
    BrokerAddress,
    CallListener,
    CommitCompleted,
    CommittedFetched,
    MemberClosed,
    MemberEffect,
    MemberFailed,
    RebalanceCompleted,
    RequestPositions,
    SendRequest,
    WatchTopics,
)
from kohort.client.member.member import Member, MemberSettings, MemberState
from kohort.client.member.member_events import (
    CallbackReturned,
    CallId,
    CloseRequested,
    CommittedRequested,
    DeadlineReached,
    MemberEvent,
    OffsetAndMetadata,
    Polled,
    PositionsReported,
    RequestFailed,
    RequestFailure,
    ResponseReceived,
    Subscribed,
    TopicsUpdated,
    Unsubscribed,
)
from kohort.client.rebalances import Rebalance
from kohort.coordinator.commands import Ticket, TimerFired
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.outcome import Outcome
from kohort.types import (
    BrokerId,
    ErrorCode,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    TopicPartition,
)
from kohort.wire.api.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from tests.client.coordinator_bridge import command_of, error_response, response_of
from tests.coordinator.driver import Driver

BROKER = BrokerAddress(node_id=BrokerId(1), host="h", port=9092)


@dataclass
class MemoryCluster:
    seed: int
    topics: dict[Topic, int]
    limits: GroupConfig = field(default_factory=GroupConfig)
    now: Millis = Millis(0)
    is_coordinator_up: bool = True
    last_positions: dict[TopicPartition, Offset] = field(default_factory=dict)
    """The position of the last owner of each partition."""
    reread: list[str] = field(default_factory=list)
    """Members that did not start at the position of the last owner."""

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)  # noqa: S311  # drawn again from the same seed
        self.coordinator = Driver(self.limits)
        self.applications: list[MemberApplication] = []
        self._heap: list[tuple[Millis, int, Callable[[], None]]] = []
        self._order = count()
        self._pending: dict[Ticket, tuple[Any, Callable[[object], None]]] = {}
        self._tickets = count(1)
        self._replied = 0

    # Time

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (Millis(self.now + delay_ms), next(self._order), action))

    def run(self, for_ms: int) -> None:
        """Advance time: deliver messages, fire timers, run applications."""
        until = Millis(self.now + for_ms)
        while True:
            timer = min(self.coordinator.timers.values(), default=None)
            times = [] if timer is None else [timer]
            times += [self._heap[0][0]] if self._heap else []
            at = min(times, default=None)
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
        return self.rng.randint(1, 20)

    # Broker

    def handle_request(self, body: Any, client_id: str, then: Callable[[object], None]) -> None:
        """A request arrives; `then` takes the response, whenever there is one."""
        if isinstance(body, FindCoordinatorRequest):
            then(self._coordinator_response())
        elif not self.is_coordinator_up:
            then(error_response(body, ErrorCode.NOT_COORDINATOR))
        else:
            ticket = Ticket(next(self._tickets))
            self._pending[ticket] = (body, then)
            fresh = MemberId(f"{client_id}-{ticket}")
            self._release(self.coordinator.decide(command_of(body, ticket, client_id, fresh)))

    def _coordinator_response(self) -> FindCoordinatorResponse:
        error = ErrorCode.NONE if self.is_coordinator_up else ErrorCode.COORDINATOR_NOT_AVAILABLE
        named = Coordinator(key="g", node_id=BROKER.node_id, host="h", port=9092, error_code=error)
        return FindCoordinatorResponse(coordinators=(named,))

    def _release(self, outcome: Outcome) -> None:
        for reply in outcome.replies:
            body, then = self._pending.pop(reply.ticket)
            then(response_of(body, reply))

    def crash_coordinator(self) -> None:
        """Drop pending requests; committed state is loaded at once."""
        self._pending.clear()
        self.coordinator.crash()
        for application in self.applications:
            application.disconnect()

    # State

    @property
    def alive(self) -> "list[MemberApplication]":
        return [each for each in self.applications if each.is_alive]

    @property
    def is_settled(self) -> bool:
        """Whether all members are stable in one generation, and each partition has one owner."""
        members = [each.member for each in self.alive if each.topics is not None]
        held = [at for member in members for at in member.owned]
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
        """Wait until the group is stable and stays so."""
        ends = self.now + within_ms
        while self.now < ends:
            self.run(500)
            if self.is_settled:
                self.run(10_000)
                if self.is_settled:
                    return
        states = [
            (each.name, each.member.state, each.member.generation, sorted(each.member.owned))
            for each in self.alive
        ]
        raise AssertionError(f"not settled: {states}")


@dataclass
class LinkDirection:
    """One direction of a connection; keeps the order."""

    clear_at: int = 0

    def delay(self, cluster: MemoryCluster) -> int:
        self.clear_at = max(self.clear_at, cluster.now + cluster.delay())
        return self.clear_at - cluster.now


@dataclass
class MemberApplication:
    """A simulated application with its consumer: poll, process, poll again."""

    cluster: MemoryCluster
    name: str
    settings: MemberSettings
    topics: frozenset[Topic] | None
    work_ms_max: int = 400

    def __post_init__(self) -> None:
        self.member = Member(self.settings, self.cluster.rng.random)
        self.is_alive = True
        self.is_closing = False
        self.is_in_poll = False
        self.call: CallListener | None = None
        self.revoking: frozenset[TopicPartition] = frozenset()
        self.positions: dict[TopicPartition, Offset] = {}
        """The next offset to deliver."""
        self.processed: dict[TopicPartition, Offset] = {}
        """The next offset to process."""
        self.committed: dict[TopicPartition, Offset] = {}
        self.waiting: dict[int, SendRequest] = {}
        self.rebalances: list[Rebalance] = []
        self.failures: list[ConsumerError] = []
        self.calls: list[CallListener] = []
        self._watched: frozenset[Topic] = frozenset()
        self._wake_at: Millis | None = None
        self._call_ids = count(1)
        self._to_broker, self._from_broker = LinkDirection(), LinkDirection()
        self._fetching: dict[CallId, frozenset[TopicPartition]] = {}
        if self.topics is not None:
            self.feed(Subscribed(topics=self.topics))
        self.cluster.applications.append(self)
        self.cluster.later(self.cluster.delay(), self.poll)

    # Application loop

    def poll(self) -> None:
        if not self.is_alive or self.is_closing:
            return
        self.is_in_poll = True
        self.processed.update(self.positions)
        self.feed(Polled())
        self.cluster.later(self.cluster.delay(), self.leave_poll)

    def leave_poll(self) -> None:
        if not self.is_alive or self.is_closing:
            return
        if self.call is not None:
            self.cluster.later(self.cluster.delay(), self.leave_poll)
            return
        self.is_in_poll = False
        for at in self.member.owned - self.revoking:
            if at in self.positions:
                self.positions[at] = Offset(self.positions[at] + self.cluster.rng.randint(0, 5))
        self.cluster.later(self.cluster.rng.randint(0, self.work_ms_max), self.poll)

    def close(self) -> None:
        self.is_closing = True
        self.processed.update(self.positions)
        self.feed(CloseRequested())
        self._run_listener()

    def unsubscribe(self) -> None:
        self.topics = None
        self.feed(Unsubscribed())
        self._run_listener()

    def crash(self) -> None:
        self.is_alive = False
        self.waiting.clear()

    def disconnect(self) -> None:
        for request_id in list(self.waiting):
            self._on_failure(request_id, RequestFailure.DISCONNECTED)

    # Effects of the member

    def feed(self, event: MemberEvent) -> None:
        before = self.member.owned
        for effect in self.member.handle(event, self.cluster.now):
            self._carry_out(effect)
        for gone in before - self.member.owned:
            self.positions.pop(gone, None)
            self.processed.pop(gone, None)
            self.committed.pop(gone, None)
        self._schedule_wake()

    def _carry_out(self, effect: MemberEffect) -> None:  # noqa: C901  # a flat table
        match effect:
            case SendRequest():
                self._send(effect)
            case CallListener():
                assert self.call is None, f"{self.call} is under way"
                self.call = effect
                self.cluster.later(self.cluster.delay(), self._run_listener)
            case AwaitPoll():
                self.cluster.later(0, self._report_poll)
            case RequestPositions():
                self.revoking |= effect.revoking
                self.cluster.later(0, self._report_positions)
            case WatchTopics():
                self._watched = effect.topics
                self.cluster.later(self.cluster.delay(), self.report_topics)
            case AutoCommitCompleted() if effect.error is None:
                self.committed |= {at: fetched.offset for at, fetched in effect.positions.items()}
            case RebalanceCompleted():
                self.rebalances.append(effect.rebalance)
            case MemberFailed():
                self.failures.append(effect.error)
            case CommittedFetched():
                self._start_at(effect)
            case MemberClosed():
                self.is_alive = False
            case AutoCommitCompleted() | CommitCompleted():
                pass

    def _feed_if_alive(self, event: MemberEvent) -> None:
        if self.is_alive:
            self.feed(event)

    def _report_positions(self) -> None:
        moved = {
            at: OffsetAndMetadata(offset=offset)
            for at, offset in self.processed.items()
            if offset > self.committed.get(at, 0)
        }
        self._feed_if_alive(PositionsReported(positions=moved))

    def _report_poll(self) -> None:
        if self.is_alive and self.is_in_poll:
            self.processed.update(self.positions)
            self.feed(Polled())

    def report_topics(self) -> None:
        seen = {topic: n for topic, n in self.cluster.topics.items() if topic in self._watched}
        self._feed_if_alive(TopicsUpdated(partitions=seen))

    def _run_listener(self) -> None:
        """Run the listener, as poll, unsubscribe and close do."""
        while self.is_alive and self.call is not None:
            call, self.call = self.call, None
            self.calls.append(call)
            if call.change is AssignmentChange.ASSIGNED:
                self._fetch_committed(call.partitions)
            for at in call.partitions & self.positions.keys():
                self.cluster.last_positions[at] = self.positions[at]
            self.feed(CallbackReturned())
            if call.change is not AssignmentChange.ASSIGNED:
                self.revoking -= call.partitions

    def _fetch_committed(self, partitions: frozenset[TopicPartition]) -> None:
        if not partitions:
            return
        call_id = CallId(next(self._call_ids))
        self._fetching[call_id] = partitions
        self.feed(CommittedRequested(call_id=call_id, partitions=partitions))

    def _start_at(self, fetched: CommittedFetched) -> None:
        for at in self._fetching.pop(fetched.call_id):
            found = fetched.positions.get(at)
            offset = Offset(0) if found is None else found.offset
            if at in self.member.owned and at not in self.positions and fetched.error is None:
                self.positions[at] = self.processed[at] = self.committed[at] = offset
                ended = self.cluster.last_positions.get(at, Offset(0))
                if offset != ended:
                    self.cluster.reread.append(f"{self.name}: {at} from {offset}, not {ended}")

    def _schedule_wake(self) -> None:
        due = self.member.deadline()
        if due is None or not self.is_alive:
            return
        if self._wake_at is None or due < self._wake_at or self._wake_at <= self.cluster.now:
            self._wake_at = due
            self.cluster.later(max(0, due - self.cluster.now), self._wake)

    def _wake(self) -> None:
        due = self.member.deadline()
        self._wake_at = None
        if self.is_alive and due is not None:
            if due <= self.cluster.now:
                self.feed(DeadlineReached())
                after = self.member.deadline()
                assert after is None or after > self.cluster.now, f"{self.name} would never sleep"
            self._schedule_wake()

    # Network

    def _send(self, send: SendRequest) -> None:
        cluster = self.cluster
        self.waiting[send.request_id] = send

        def arrive() -> None:
            cluster.handle_request(send.body, self.name, respond)

        def respond(body: object) -> None:
            cluster.later(
                self._from_broker.delay(cluster), lambda: self._on_response(send.request_id, body)
            )

        # JoinGroup and SyncGroup use their own connection; the others keep their order.
        is_slow = isinstance(send.body, JoinGroupRequest | SyncGroupRequest)
        cluster.later(cluster.delay() if is_slow else self._to_broker.delay(cluster), arrive)
        cluster.later(
            send.timeout_ms, lambda: self._on_failure(send.request_id, RequestFailure.TIMED_OUT)
        )

    def _on_response(self, request_id: int, body: object) -> None:
        send = self.waiting.pop(request_id, None)
        if send is not None and self.is_alive:
            self.feed(ResponseReceived(request_id=send.request_id, body=body))

    def _on_failure(self, request_id: int, failure: RequestFailure) -> None:
        send = self.waiting.pop(request_id, None)
        if send is not None and self.is_alive:
            self.feed(RequestFailed(request_id=send.request_id, failure=failure))
