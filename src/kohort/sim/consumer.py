"""One process of a member: the real consumer core over simulated links and time.

`advance` is one iteration of the consumer's background thread. The application that polls is in
application.py. Checkers see the bytes on the wire and the partitions that the member claims.
"""

from collections.abc import Callable
from enum import StrEnum
from itertools import count
from typing import Any

from kohort.client.consumer_core import ConsumerCore
from kohort.client.member.member import Member, MemberState
from kohort.client.network.send_queue import ClientRequest, Lane, failure_of
from kohort.client.options import Options, read_options
from kohort.protocol.errors import ProtocolError
from kohort.sim.checker_hub import ClaimedPartitions, Worker
from kohort.sim.client_connection import read_records
from kohort.sim.context import SimContext
from kohort.sim.node import HOST, PORT
from kohort.sim.plan import CommitMode, MemberPlan
from kohort.sim.process import ClientProcess, ProcessTimer
from kohort.sim.trace_values import show_partition, show_request, show_response
from kohort.types import ErrorCode, Millis, Topic, TopicPartition
from kohort.wire.api.k01_fetch import FetchRequest, FetchResponse, PartitionData
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.wire.consumer_protocol import decode_assignment

_RESENDABLE = (OffsetCommitRequest, SyncGroupRequest, HeartbeatRequest)

_METADATA_MS = 2_500
"""metadata.max.age.ms of each process."""


def _nothing() -> None: ...


class ProcessEnd(StrEnum):
    """How a process ends."""

    CRASHED = "crashed"
    VANISHED = "vanished"
    CLOSED = "closed"
    FENCED = "fenced"


class SimulatedConsumer:
    def __init__(self, context: SimContext, plan: MemberPlan, number: int) -> None:
        self._context = context
        self.plan = plan
        self.name = f"{plan.name}/{number}"
        self.process = ClientProcess(context.scheduler)
        self.topics: frozenset[Topic] = frozenset()
        rng = context.streams.named("member", self.name)
        self.core = ConsumerCore(_options(plan), rng.random)
        self._connections = {
            lane: context.connection(self.process, plan.name, is_old=plan.is_old) for lane in Lane
        }
        self._numbers = count(1)
        self._is_advancing = self._has_changes = False
        self._alarm: tuple[Millis, ProcessTimer] | None = None
        self._claim: dict[TopicPartition, int] = {}
        self._assigned_in: dict[TopicPartition, int] = {}
        """The last generation that assigned each partition to this process."""
        self.on_change: Callable[[], None] = _nothing
        """Called when the application may have something to do."""
        self.on_end: Callable[[], None] = _nothing
        self.sent_requests: list[object] = []
        """The requests that a `ghost` event may send again."""
        context.trace.log(self.name, "start", f"group={plan.group}", *plan.assignors)

    @property
    def now(self) -> Millis:
        return Millis(self._context.scheduler.now_ms)

    @property
    def member(self) -> Member:
        assert self.core.member is not None, "group.id is set"
        return self.core.member

    @property
    def is_stable(self) -> bool:
        return self.member.state is MemberState.STABLE

    def worker_at(self, partition: TopicPartition) -> Worker:
        """This process, in the generation that assigned the partition to it.

        The process may have joined a later one without knowing its assignment yet.
        """
        return Worker(
            process=self.name,
            group=self.plan.group,
            generation=self._assigned_in.get(partition, -1),
            member_id=self.member.member_id,
        )

    def end(self, end: ProcessEnd) -> None:
        if not self.process.is_running:
            return
        self.process.end()
        self._context.checkers.ended(self.name)
        self._context.trace.log(self.name, "end", end)
        for connection in self._connections.values():
            connection.vanish() if end is ProcessEnd.VANISHED else connection.close()
        self.on_end()

    # The background thread

    def advance(self) -> None:
        """Send requests and notify the application until nothing changes."""
        self._has_changes = True
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._has_changes and self.process.is_running:
                self._has_changes = False
                self.core.advance(self.now)
                for request in self.core.send_queue.take():
                    self._send(request)
                self._observe()
                self.on_change()
        finally:
            self._is_advancing = False
        if self.process.is_running:
            self._set_alarm()

    def _set_alarm(self) -> None:
        deadline = self.core.deadline()
        if self._alarm is not None and self._alarm[0] != deadline:
            self._alarm[1].cancel()
            self._alarm = None
        if deadline is not None and self._alarm is None:
            delay_ms = max(0, deadline - self.now)
            self._alarm = deadline, self.process.later(delay_ms, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.advance()

    def _send(self, request: ClientRequest) -> None:
        trace, number, body = self._context.trace, next(self._numbers), request.body
        asked_at = self._context.scheduler.now
        if isinstance(body, _RESENDABLE):
            self.sent_requests.append(body)
        if trace.is_read and request.lane is not Lane.FETCH:
            trace.log(self.name, "request", f"#{number}", show_request(body))

        def respond(response: Any) -> None:
            if trace.is_read and request.lane is not Lane.FETCH:
                trace.log(self.name, "response", f"#{number}", show_response(response))
            if isinstance(body, SyncGroupRequest):
                self._on_dealt(body, response)
            elif isinstance(body, FetchRequest):
                self._on_fetched(body, response, asked_at)
            request.callback(response, self.now)
            self.advance()

        def fail(error: ProtocolError) -> None:
            trace.log(self.name, "lost", f"#{number}", failure_of(error))
            request.callback(failure_of(error), self.now)
            self.advance()

        self._connections[request.lane].send(
            body, request.timeout_ms, respond, fail, version_max=request.version_max
        )

    # Reports to checkers

    def _observe(self) -> None:
        claim = {at: self._assigned_in.get(at, -1) for at in sorted(self.member.owned)}
        if claim == self._claim:
            return
        self._claim = claim
        shown = ",".join(f"{show_partition(at)}#{by}" for at, by in claim.items())
        self._context.trace.log(self.name, "assigned", shown or "nothing")
        instance_id = self.plan.instance_id
        owned = ClaimedPartitions(group=self.plan.group, instance_id=instance_id, owned=claim)
        self._context.checkers.claims(self.name, owned)

    def _on_dealt(self, asked: SyncGroupRequest, response: SyncGroupResponse) -> None:
        """Record the generation that assigned each partition."""
        if not response.error_code and response.assignment:
            for topic in decode_assignment(response.assignment).assigned_partitions:
                for index in topic.partitions:
                    self._assigned_in[TopicPartition(topic.topic, index)] = asked.generation_id

    def _on_fetched(self, asked: FetchRequest, response: FetchResponse, asked_at: int) -> None:
        names = {topic.topic_id: topic.topic for topic in asked.topics}
        positions = {
            TopicPartition(topic.topic, each.partition): each.fetch_offset
            for topic in asked.topics
            for each in topic.partitions
        }
        for topic in response.responses:
            for part in topic.partitions:
                name = topic.topic or names[topic.topic_id]
                partition = TopicPartition(name, part.partition_index)
                self._on_part(partition, part, positions[partition], asked_at)

    def _on_part(
        self, partition: TopicPartition, part: PartitionData, asked: int, asked_at: int
    ) -> None:
        records = self._context.checkers.records
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            records.out_of_range(partition, asked)
        elif not part.error_code:
            records.fetched(partition, asked, read_records(part.records or b""), asked_at)


def _options(plan: MemberPlan) -> Options:
    options: dict[str, object] = {
        "bootstrap.servers": f"{HOST}:{PORT}",
        "client.id": plan.name,
        "group.id": plan.group,
        "group.instance.id": plan.instance_id,
        "partition.assignment.strategy": plan.assignors,
        "session.timeout.ms": plan.session_ms,
        "heartbeat.interval.ms": plan.heartbeat_ms,
        "max.poll.interval.ms": plan.max_poll_ms,
        "request.timeout.ms": plan.request_ms,
        "default.api.timeout.ms": 2 * plan.request_ms,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 500,
        "metadata.max.age.ms": _METADATA_MS,
        # A response must come before the request times out.
        "fetch.max.wait.ms": min(plan.fetch_wait_ms, plan.request_ms // 2),
        "enable.auto.commit": plan.commits is CommitMode.AUTO,
        "auto.commit.interval.ms": plan.commit_interval_ms,
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
    }
    return read_options(options.items())
