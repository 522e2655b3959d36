"""Deadlines while the wall clock is set, and after a time in which the loop did not run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.log.catalog import Catalog
from kohort.node.broker import Broker
from kohort.node.config import BrokerConfig
from kohort.node.loop import NodeLoop
from kohort.node.topics import Topics
from kohort.types import ErrorCode, GroupId, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from kohort.wire.schema import schema_of
from tests.node.broker_harness import fetch_request, new_batch, produce_request
from tests.node.fake_transport import FakeNodeTransport, FakeTransport
from tests.node.raw_client import Membership, join_request
from tests.node.stepped_clock import SteppedClock

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
SESSION_MS = 10 * SECOND
DELAY_MS = 3 * SECOND

TICK_MS = 100
"""How often the loop runs at least, while it runs."""

STEPS = pytest.mark.parametrize(
    "step_ms", [-2 * HOUR, -2 * MINUTE, MINUTE, 3 * HOUR], ids=lambda step: f"{step // 1000}s"
)


class RunningLoop:
    """An event loop with one client. Time passes only in `run` and `suspend`."""

    def __init__(self, directory: Path) -> None:
        settings = BrokerConfig({"group.initial.rebalance.delay.ms": str(DELAY_MS)})
        self.clock = SteppedClock()
        self.catalog, _ = Catalog.open(directory, self.clock.now(), settings.topic_defaults())
        self.broker = Broker(settings, Topics(self.catalog, settings), None)
        self.loop = NodeLoop(self.broker, FakeNodeTransport(), self.clock)
        self.loop.start()
        while not self.loop.is_loaded:
            self.loop.load()
        self._transport = FakeTransport()
        connection = self.loop.connect(self._transport, "127.0.0.1", 1)
        assert connection is not None
        self._connection = connection
        self._frames = FrameReader()
        self._asked = (0, 0)

    def send(self, body: object, version: int) -> None:
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        self._asked = (api_key, version)
        self._connection.feed(encode_request(body, version, 1, "c"))
        self.loop.iterate([self._connection])

    def received(self) -> Any:
        """The response, or None if there is none yet."""
        data, self._transport.written = self._transport.written, b""
        frames = self._frames.feed(data) if data else []
        return decode_response(frames[0], *self._asked)[1] if frames else None

    def ask(self, body: object, version: int) -> Any:
        self.send(body, version)
        return self.received()

    def run(self, ms: int) -> None:
        for _ in range(ms // TICK_MS):
            self.clock.advance(TICK_MS)
            self.loop.timers_due()
            self.loop.iterate()

    def suspend(self, ms: int) -> None:
        """The loop does not run for this time; then its timer fires."""
        self.clock.advance(ms)
        self.loop.timers_due()
        self.loop.iterate()

    # A group with one member

    def join(self, group: str = "g") -> Membership:
        returned = self.ask(join_request(group, session_ms=SESSION_MS), 9)
        self.send(join_request(group, returned.member_id, session_ms=SESSION_MS), 9)
        self.run(DELAY_MS)
        joined = self.received()
        share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        sync = SyncGroupRequest(
            group_id=GroupId(group),
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(share,),
        )
        assert self.ask(sync, 5).error_code == 0
        return Membership(GroupId(group), joined.member_id, joined.generation_id)

    def heartbeat(self, member: Membership) -> ErrorCode:
        body = HeartbeatRequest(
            group_id=member.group_id, generation_id=member.generation, member_id=member.member_id
        )
        return ErrorCode(self.ask(body, 4).error_code)

    def commit(self, member: Membership) -> ErrorCode:
        part = OffsetCommitRequestPartition(
            partition_index=Partition(0), committed_offset=Offset(1)
        )
        body = OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            topics=(OffsetCommitRequestTopic(name=Topic("t"), partitions=(part,)),),
        )
        return ErrorCode(self.ask(body, 9).topics[0].partitions[0].error_code)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningLoop]:
    running = RunningLoop(tmp_path)
    topic = CreatableTopic(name=Topic("t"), num_partitions=1, replication_factor=1)
    running.ask(CreateTopicsRequest(topics=(topic,)), 7)
    yield running
    running.catalog.close(running.clock.now())


# The wall clock is set


@STEPS
def test_a_clock_step_changes_no_fetch_wait(running: RunningLoop, step_ms: int) -> None:
    running.send(fetch_request(max_wait_ms=2 * SECOND), 12)

    running.clock.set_wall(step_ms)
    running.run(2 * SECOND - TICK_MS)
    assert running.received() is None
    running.run(TICK_MS)

    assert running.received() is not None


@STEPS
def test_a_clock_step_changes_no_initial_delay(running: RunningLoop, step_ms: int) -> None:
    returned = running.ask(join_request("g", session_ms=SESSION_MS), 9)
    running.send(join_request("g", returned.member_id, session_ms=SESSION_MS), 9)

    running.clock.set_wall(step_ms)
    running.run(DELAY_MS - TICK_MS)
    assert running.received() is None
    running.run(TICK_MS)

    assert running.received().error_code == 0


@STEPS
def test_a_clock_step_changes_no_session(running: RunningLoop, step_ms: int) -> None:
    member = running.join()

    running.clock.set_wall(step_ms)
    running.run(SESSION_MS - TICK_MS)
    assert running.heartbeat(member) == ErrorCode.NONE
    running.run(SESSION_MS)

    assert running.heartbeat(member) == ErrorCode.UNKNOWN_MEMBER_ID


@STEPS
def test_timestamps_follow_the_wall_clock(running: RunningLoop, step_ms: int) -> None:
    member = running.join()

    running.clock.set_wall(step_ms)
    running.heartbeat(member)
    running.commit(member)

    committed = running.broker.coordinator.groups[member.group_id].offsets.committed
    (record,) = committed[Topic("t")].values()
    assert record.commit_ms == running.clock.now()


def test_retention_follows_the_wall_clock(running: RunningLoop) -> None:
    batch = new_batch("old", at=running.clock.now())
    running.ask(produce_request(batch), 12)

    running.clock.set_wall(8 * 24 * HOUR)
    while not running.loop.clean(1 << 20):
        pass

    log = running.catalog.partition(Topic("t"), 0)
    assert log is not None
    assert log.start_offset == log.end_offset == 1


# The loop does not run for a while


def test_a_suspension_ends_no_session(running: RunningLoop) -> None:
    member = running.join()

    running.suspend(6 * SESSION_MS)

    assert running.heartbeat(member) == ErrorCode.NONE


def test_after_a_suspension_a_session_goes_on_with_the_time_it_had_left(
    running: RunningLoop,
) -> None:
    member = running.join()
    running.run(SESSION_MS - 3 * SECOND)

    running.suspend(HOUR)
    running.run(2 * SECOND)
    still = running.broker.coordinator.groups[member.group_id].members
    assert member.member_id in still
    running.run(SECOND)

    assert member.member_id not in still


def test_a_suspension_extends_a_rebalance(running: RunningLoop) -> None:
    member = running.join()
    other = running.ask(join_request("g", session_ms=SESSION_MS), 9)
    running.send(join_request("g", other.member_id, session_ms=SESSION_MS), 9)

    running.suspend(6 * SESSION_MS)

    group = running.broker.coordinator.groups[member.group_id]
    assert {member.member_id, other.member_id} == set(group.members)


def test_a_suspension_is_logged_once_and_counted(
    running: RunningLoop, caplog: pytest.LogCaptureFixture
) -> None:
    running.run(SECOND)

    running.suspend(30 * SECOND + 500)
    running.run(SECOND)

    said = [each.getMessage() for each in caplog.records if "loop-suspended" in each.getMessage()]
    assert said == ["loop-suspended seconds=30.0"]
    metrics = running.broker.metrics
    assert (metrics.suspensions, metrics.suspended_seconds) == (1, pytest.approx(30.0))


def test_a_busy_loop_reports_no_suspension(running: RunningLoop) -> None:
    for _ in range(20):
        running.suspend(SECOND)

    assert running.broker.metrics.suspensions == 0


def test_there_is_always_a_timer_for_the_next_tick(running: RunningLoop) -> None:
    running.run(SECOND)

    _, delay_s = running.loop.next_timer()

    assert 0 < delay_s <= 0.25
