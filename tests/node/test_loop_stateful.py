"""The event loop under any order of requests, disconnects, full disks and slow syncs.

Hypothesis pipelines requests on several connections, parks fetches of the groups' own topic, and
decides when the loop iterates. After every iteration the groups in memory must equal the groups
rebuilt from the log, responses must be in the order of their requests, and no request may have met
an internal error. At the end every request must have been answered.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.log.catalog import Catalog
from kohort.log.sync_queue import PendingSync
from kohort.node.broker import Broker
from kohort.node.config import BrokerConfig
from kohort.node.connection import Connection
from kohort.node.deadline_clock import TICK_MS
from kohort.node.fetch_purgatory import FetchPurgatory
from kohort.node.loop import NodeLoop
from kohort.node.request import Request
from kohort.node.syncer import Syncer
from kohort.node.topics import Topics
from kohort.sim.checkers.replay import check_replay
from kohort.sim.disk import DiskImage, Mount
from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    MemberId,
    Offset,
    Partition,
    Topic,
    Uuid,
)
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from kohort.wire.schema import schema_of
from tests.node.broker_harness import START, fetch_request
from tests.node.fake_transport import FakeTransport
from tests.node.raw_client import join_request
from tests.node.stepped_clock import SteppedClock

CONNECTIONS = 4
GROUPS = ("g", "h")
TOPIC = "t"
SESSION_MS = 6_000
PATIENCE_MS = 10 * 60_000


class Client:
    """One connection and the requests it has sent, in order."""

    def __init__(self, loop: NodeLoop) -> None:
        self.transport = FakeTransport()
        connection = loop.connect(self.transport, "127.0.0.1", 1)
        assert connection is not None
        self.connection: Connection = connection
        self._frames = FrameReader()
        self._numbers = count()
        self.sent: list[tuple[int, int, int, object]] = []

    def send(self, body: object, version: int) -> None:
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        number = next(self._numbers)
        self.sent.append((number, api_key, version, body))
        self.connection.feed(encode_request(body, version, number, "c"))

    def receive(self) -> list[tuple[Any, Any]]:
        """Requests with their responses, which come in the order of the requests."""
        data, self.transport.written = self.transport.written, b""
        answered = []
        for frame in self._frames.feed(data) if data else ():
            number, api_key, version, body = self.sent.pop(0)
            correlation_id, response = decode_response(frame, api_key, version)
            assert correlation_id == number, "a response out of order"
            answered.append((body, response))
        return answered


class Loop(RuleBasedStateMachine):
    @initialize(is_fsync=st.booleans())
    def open(self, *, is_fsync: bool) -> None:
        self.clock = SteppedClock()
        self.platters = DiskImage()
        self.syncs_running = 0
        ids = count(1)
        node_settings = BrokerConfig({"group.initial.rebalance.delay.ms": "0"})
        catalog, _ = Catalog.open(
            Mount(self.platters), START, node_settings.topic_defaults(), cluster_id="stateful"
        )
        topics = Topics(catalog, node_settings, lambda: Uuid(next(ids).to_bytes(16)))
        broker = Broker(
            node_settings,
            topics,
            Syncer(self) if is_fsync else None,
            fresh_uuid=lambda: UUID(int=next(ids)),
        )
        self.loop = NodeLoop(broker, self, self.clock)
        self.loop.start()
        while not self.loop.is_loaded:
            self.loop.load()
        self.clients = [Client(self.loop) for _ in range(CONNECTIONS)]
        self.fed: dict[Connection, None] = {}
        self.members: dict[str, list[tuple[MemberId, Generation]]] = {name: [] for name in GROUPS}
        self._send(self.clients[0], _create_topic(), 7)
        self.settle()

    # Transport and sync driver of the loop

    def send(self) -> None: ...

    def start(self, files: Sequence[PendingSync]) -> None:
        self.syncs_running += 1
        assert self.syncs_running == 1, "two syncs at once"
        self._files = files

    # Requests

    client = st.integers(0, CONNECTIONS - 1)
    group = st.sampled_from(GROUPS)
    any_member = st.integers(0, 5)

    def _send(self, client: Client, body: object, version: int) -> None:
        client.send(body, version)
        self.fed[client.connection] = None

    def _member(self, group: str, number: int) -> tuple[MemberId, Generation]:
        known = self.members[group]
        return known[-1 - number % len(known)] if known else (MemberId(""), Generation(-1))

    @rule(client=client, topic=st.sampled_from((CONSUMER_OFFSETS, KOHORT_EVENTS)))
    def fetch(self, client: int, topic: Topic) -> None:
        log = self.loop.broker.topics.catalog.partition(topic, 0)
        end = 0 if log is None else log.end_offset
        self._send(self.clients[client], fetch_request(end, topic, max_wait_ms=30_000), 12)

    @rule(client=client, group=group, number=any_member, is_new=st.booleans())
    def join(self, client: int, group: str, number: int, *, is_new: bool) -> None:
        member_id = "" if is_new else self._member(group, number)[0]
        self._send(self.clients[client], join_request(group, member_id, session_ms=SESSION_MS), 9)

    @rule(client=client, group=group, number=any_member)
    def sync_group(self, client: int, group: str, number: int) -> None:
        member_id, generation = self._member(group, number)
        share = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
        body = SyncGroupRequest(
            group_id=GroupId(group),
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(share,),
        )
        self._send(self.clients[client], body, 5)

    @rule(client=client, group=group, number=any_member)
    def heartbeat(self, client: int, group: str, number: int) -> None:
        member_id, generation = self._member(group, number)
        body = HeartbeatRequest(
            group_id=GroupId(group), generation_id=generation, member_id=member_id
        )
        self._send(self.clients[client], body, 4)

    @rule(client=client, group=group, number=any_member)
    def leave(self, client: int, group: str, number: int) -> None:
        leaver = MemberIdentity(member_id=self._member(group, number)[0])
        body = LeaveGroupRequest(group_id=GroupId(group), members=(leaver,))
        self._send(self.clients[client], body, 5)

    @rule(client=client, group=group, number=any_member, offset=st.integers(0, 100))
    def commit(self, client: int, group: str, number: int, offset: int) -> None:
        member_id, generation = self._member(group, number)
        partition = OffsetCommitRequestPartition(
            partition_index=Partition(0), committed_offset=Offset(offset)
        )
        body = OffsetCommitRequest(
            group_id=GroupId(group),
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=(OffsetCommitRequestTopic(name=Topic(TOPIC), partitions=(partition,)),),
        )
        self._send(self.clients[client], body, 9)

    @rule(client=client)
    def fetch_offsets(self, client: int) -> None:
        groups = tuple(OffsetFetchRequestGroup(group_id=GroupId(name)) for name in GROUPS)
        self._send(self.clients[client], OffsetFetchRequest(groups=groups), 8)

    @rule(client=client, group=group)
    def delete_group(self, client: int, group: str) -> None:
        self._send(self.clients[client], DeleteGroupsRequest(groups_names=(GroupId(group),)), 2)

    @rule(client=client, is_deleted=st.booleans())
    def change_topic(self, client: int, *, is_deleted: bool) -> None:
        if is_deleted:
            self._send(self.clients[client], DeleteTopicsRequest(topic_names=(Topic(TOPIC),)), 5)
        else:
            self._send(self.clients[client], _create_topic(), 7)

    @rule(client=client, group=group)
    def form(self, client: int, group: str) -> None:
        """A member joins and syncs; without other members the group becomes stable."""
        for is_new in (True, False):
            self.join(client, group, 0, is_new=is_new)
            self.settle()
            self.advance(1)
            self.settle()
        self.sync_group(client, group, 0)
        self.settle()

    # Faults and time

    @rule()
    def iterate(self) -> None:
        fed, self.fed = self.fed, {}
        self.loop.iterate(fed)
        for client in self.clients:
            for body, response in client.receive():
                self._learn(body, response)

    @rule()
    def sync(self) -> None:
        if self.syncs_running:
            self.syncs_running = 0
            for file in self._files:
                file.sync()
            self.loop.sync_finished(0.0)

    @rule()
    def settle(self) -> None:
        """Iterate and sync until nothing waits for either."""
        syncer = self.loop.broker.syncer
        self.iterate()
        while syncer is not None and not syncer.is_idle:
            self.sync()
            self.iterate()

    @rule(ms=st.sampled_from((1, 100, 3_000, 7_000)))
    def advance(self, ms: int) -> None:
        for passed in range(0, ms, TICK_MS):
            self.suspend(min(TICK_MS, ms - passed))

    @rule(ms=st.sampled_from((3_000, 60_000)))
    def suspend(self, ms: int) -> None:
        """The loop does not run for this time."""
        self.clock.advance(ms)
        self.loop.timers_due()

    @rule(ms=st.sampled_from((-7_200_000, -3_000, 3_000, 7_200_000)))
    def set_clock(self, ms: int) -> None:
        self.clock.set_wall(ms)

    @rule(client=client)
    def reconnect(self, client: int) -> None:
        old = self.clients[client]
        self.fed.pop(old.connection, None)
        old.connection.lost()
        self.clients[client] = Client(self.loop)

    @rule(is_full=st.booleans())
    def fill_disk(self, *, is_full: bool) -> None:
        self.platters.is_full = is_full

    def _learn(self, body: object, response: Any) -> None:
        error = getattr(response, "error_code", 0)
        member_id: Any = getattr(response, "member_id", "")
        group = getattr(body, "group_id", None)
        if group in self.members and member_id and error in (0, ErrorCode.MEMBER_ID_REQUIRED):
            generation = response.generation_id if error == 0 else Generation(-1)
            self.members[group].append((member_id, generation))

    # Invariants

    @invariant()
    def memory_equals_the_log(self) -> None:
        if not self.fed and not self.loop.broker.groups.deferred:
            check_replay(self.loop.broker)

    @invariant()
    def no_bug_was_met(self) -> None:
        if self.loop.internal_error is not None:
            raise self.loop.internal_error

    def teardown(self) -> None:
        """With time, disk space and syncs, every request is answered."""
        self.platters.is_full = False
        for _ in range(PATIENCE_MS // 3_000):
            self.settle()
            if not any(client.sent for client in self.clients):
                break
            self.advance(3_000)
        self.no_bug_was_met()
        check_replay(self.loop.broker)
        unanswered = [client.sent for client in self.clients if not client.transport.is_gone]
        assert unanswered == [[] for _ in unanswered]
        self.loop.broker.topics.catalog.close(self.clock.now())


def _create_topic() -> CreateTopicsRequest:
    topic = CreatableTopic(name=Topic(TOPIC), num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=(topic,))


TestLoop = Loop.TestCase
TestLoop.settings = settings(max_examples=2 * settings().max_examples, stateful_step_count=40)


# The test detects a known bug


def reenter_decide(patch: Callable[..., None]) -> None:
    """A former bug: complete a fetch inside the append that it waits for, and let its connection
    handle the next pipelined request at once."""
    right_appended, right_answered = FetchPurgatory.appended, Connection.answered

    def appended(self: FetchPurgatory, *given: Any) -> None:
        right_appended(self, *given)
        self.complete(1 << 30)

    def answered(self: Connection, request: Request) -> None:
        is_fetch = request.header.request_api_key == 1
        right_answered(self, request)
        if is_fetch:
            self.flush(0.0)
            self.handle_requests()

    patch(FetchPurgatory, "appended", appended)
    patch(Connection, "answered", answered)


def test_deciding_between_append_and_apply_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    reenter_decide(monkeypatch.setattr)
    loop = Loop()
    loop.open(is_fsync=False)
    member, reader = 0, 1
    for is_new in (True, False):
        loop.join(member, "g", 0, is_new=is_new)
        loop.settle()
        loop.advance(1)
        loop.settle()
    loop.fetch(reader, CONSUMER_OFFSETS)
    loop.leave(reader, "g", 0)
    loop.settle()
    loop.sync_group(member, "g", 0)

    with pytest.raises(AssertionError, match="between append and apply"):
        play_on(loop)


def play_on(loop: Loop) -> None:
    loop.iterate()
    loop.no_bug_was_met()
    loop.memory_equals_the_log()
