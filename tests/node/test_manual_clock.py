"""A node with a manual clock: nothing happens by itself, and an advance completes what is due."""

import asyncio
import select
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.node.clock import SystemClock
from kohort.node.config import BrokerConfig
from kohort.node.control.errors import ControlError
from kohort.node.control.operations import run_operation
from kohort.node.deadline_clock import TICK_MS
from kohort.node.loop import NodeLoop
from kohort.node.manual_clock import ManualDeadlines
from kohort.node.server import Server
from kohort.types import DeadlineMillis, ErrorCode, Generation, GroupId
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from tests.node.broker_harness import BrokerHarness, fetch_request, values_in
from tests.node.fake_transport import FakeNodeTransport
from tests.node.manual_node import SETTINGS, ManualNode, heartbeat_request, join_with, manual_node
from tests.node.raw_client import (
    Disconnected,
    Membership,
    RawClient,
    SentRequest,
    join_alone,
    join_first,
    join_request,
)

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ManualNode]:
    with manual_node(tmp_path) as node:
        yield node


def is_answered(client: RawClient) -> bool:
    """Whether the operating system has received a response for this client already."""
    readable, _, _ = select.select([client.socket], [], [], 0)
    return bool(readable)


# Without an advance


@pytest.mark.parametrize(
    ("kind", "expected"), [("manual", ErrorCode.NONE), ("real", ErrorCode.UNKNOWN_MEMBER_ID)]
)
def test_only_the_real_clock_ends_a_session_by_itself(
    tmp_path: Path, kind: str, expected: ErrorCode
) -> None:
    with manual_node(tmp_path, kohort_clock=kind) as node:
        node.create_topic()
        member = join_alone(node.client, "g", session_ms=100)

        # The node has counted 600 ms of real time when it answers.
        node.fetch(wait_ms=600)

        assert node.heartbeat(member) == expected


def test_the_clock_stands_still(node: ManualNode) -> None:
    node.create_topic(message_timestamp_type="LogAppendTime")
    began_ms = node.clock.now_ms

    node.fetch(wait_ms=300)

    assert node.clock.now_ms == began_ms
    assert node.produce("a", at=0) == began_ms


def test_a_waiting_fetch_is_answered_in_real_time(node: ManualNode) -> None:
    node.create_topic()

    waited = node.fetch(wait_ms=300)

    assert ErrorCode(waited.error_code) == ErrorCode.NONE
    assert not waited.records


def test_a_timer_without_a_delay_fires_at_once(node: ManualNode) -> None:
    joined = join_first(node.client, "g")

    assert joined.generation_id == 1


def test_a_restarted_node_restores_sessions_that_an_advance_ends(tmp_path: Path) -> None:
    with manual_node(tmp_path) as node:
        member = join_alone(node.client, "g", session_ms=30 * SECOND)

    with manual_node(tmp_path) as node:
        node.clock.advance(seconds=29)
        assert node.heartbeat(member) == ErrorCode.NONE
        node.clock.advance(seconds=30)

        assert node.heartbeat(member) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_loop_waits_for_group_timers_only_when_they_are_due(harness: BrokerHarness) -> None:
    deadlines = ManualDeadlines()
    broker = harness.broker
    loop = NodeLoop(broker, FakeNodeTransport(), SystemClock(), group_deadlines=deadlines)
    loop.timers_due()
    broker.groups.timers.set(TimerKey(TimerKind.JOIN), 100)

    _, before_s = loop.next_timer()
    deadlines.now = DeadlineMillis(deadlines.now + 100)
    _, after_s = loop.next_timer()

    assert (before_s, after_s) == (TICK_MS / 1000, 0)


# Groups


def test_sessions_expire_in_the_order_of_their_deadlines(node: ManualNode) -> None:
    began_ms = node.clock.now_ms
    for group, session_ms in {"slow": 30_000, "quick": 10_000, "other": 20_000}.items():
        join_alone(node.client, group, session_ms=session_ms)

    result = node.clock.advance(minutes=1)

    fired = [(timer.kind, timer.group, timer.at) for timer in result.timers]
    assert [(kind, group) for kind, group, _ in fired] == [
        ("session", "quick"),
        ("session", "other"),
        ("session", "slow"),
    ]
    elapsed = [round(at.timestamp() * 1000) - began_ms for _, _, at in fired]
    assert elapsed == [10_000, 20_000, 30_000]
    assert node.clock.now_ms == began_ms + MINUTE


def test_of_several_members_only_those_whose_time_is_over_are_removed(node: ManualNode) -> None:
    quick = join_alone(node.client, "a", session_ms=10 * SECOND)
    slow = join_alone(node.client, "b", session_ms=30 * SECOND)

    node.clock.advance(seconds=20)

    assert node.heartbeat(quick) == ErrorCode.UNKNOWN_MEMBER_ID
    assert node.heartbeat(slow) == ErrorCode.NONE


def test_a_session_ends_exactly_at_its_deadline(node: ManualNode) -> None:
    join_alone(node.client, "g", session_ms=10 * SECOND)

    assert not node.clock.advance(milliseconds=9_999).timers
    assert [each.kind for each in node.clock.advance(milliseconds=1).timers] == ["session"]


def test_a_heartbeat_between_two_advances_keeps_the_session(node: ManualNode) -> None:
    member = join_alone(node.client, "g", session_ms=30 * SECOND)

    for _ in range(4):
        node.clock.advance(seconds=20)
        assert node.heartbeat(member) == ErrorCode.NONE


def test_a_heartbeat_that_has_arrived_is_handled_before_the_clock_moves(node: ManualNode) -> None:
    member = join_alone(node.client, "g", session_ms=30 * SECOND)
    node.clock.advance(seconds=29)
    sent = node.client.send(heartbeat_request(member), 4)

    result = node.clock.advance(seconds=29)

    assert not result.timers
    assert is_answered(node.client)
    assert node.client.receive(sent).error_code == 0


@pytest.fixture(params=["fsync", "os"])
def durable_node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ManualNode]:
    with manual_node(tmp_path, kohort_durability=request.param) as node:
        yield node


def begin_rebalance(client: RawClient, other: RawClient) -> tuple[Membership, SentRequest]:
    """One member does not rejoin; the join of the other one waits for it."""
    timeouts = {"session_ms": HOUR // 2, "rebalance_ms": 10 * SECOND}
    returned = client.ask(join_with("g", **timeouts), 9)
    joined = client.ask(join_with("g", returned.member_id, **timeouts), 9)
    absent = Membership(GroupId("g"), joined.member_id, Generation(joined.generation_id))
    second = other.ask(join_with("g", **timeouts), 9)
    return absent, other.send(join_with("g", second.member_id, **timeouts), 9)


def test_a_rebalance_timeout_completes_a_join_before_the_advance_returns(
    durable_node: ManualNode,
) -> None:
    node = durable_node
    with RawClient(node.address) as other:
        absent, sent = begin_rebalance(node.client, other)
        node.clock.advance(milliseconds=9_999)
        assert not is_answered(other)

        result = node.clock.advance(milliseconds=1)

        assert is_answered(other)
        joined = other.receive(sent)
        assert (joined.error_code, joined.generation_id) == (0, 2)
        assert [each.kind for each in result.timers] == ["join"]
        assert node.heartbeat(absent) == ErrorCode.UNKNOWN_MEMBER_ID


def test_no_sync_runs_when_an_advance_returns(tmp_path: Path) -> None:
    async def advance() -> None:
        server = Server(BrokerConfig(SETTINGS), tmp_path)
        address = await server.start("127.0.0.1", 0)
        with RawClient(address) as client, RawClient(address) as other:
            # Its session ends before the join: a record without a response, so nothing syncs it.
            await asyncio.to_thread(join_alone, client, "another", session_ms=5 * SECOND)
            await asyncio.to_thread(begin_rebalance, client, other)
            await run_operation(server, "advance", {"seconds": 10})
            # The event loop has not run since.
            syncer = server.broker.syncer
            assert syncer is not None
            assert syncer.is_idle
            assert not server.broker.groups.open_tickets
        await server.stop()

    asyncio.run(advance())


def test_a_member_that_sends_no_sync_is_removed(node: ManualNode) -> None:
    timeouts = {"session_ms": HOUR // 2, "rebalance_ms": 10 * SECOND}
    returned = node.client.ask(join_with("g", **timeouts), 9)
    node.client.ask(join_with("g", returned.member_id, **timeouts), 9)

    result = node.clock.advance(seconds=10)

    assert [each.kind for each in result.timers] == ["sync"]
    assert node.state("g") == "Empty"


def test_an_issued_member_id_expires(node: ManualNode) -> None:
    returned = node.client.ask(join_request("g", session_ms=10 * SECOND), 9)

    result = node.clock.advance(seconds=10)

    assert [(each.kind, each.member) for each in result.timers] == [("pending", returned.member_id)]
    joined = node.client.ask(join_request("g", returned.member_id), 9)
    assert joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_initial_delay_waits_for_an_advance(tmp_path: Path) -> None:
    with manual_node(tmp_path, group_initial_rebalance_delay_ms="3000") as node:
        returned = node.client.ask(join_request("g"), 9)
        sent = node.client.send(join_request("g", returned.member_id), 9)
        node.clock.advance(milliseconds=2_999)
        assert not is_answered(node.client)

        node.clock.advance(milliseconds=1)

        assert node.client.receive(sent).generation_id == 1


# Offsets and logs


def test_offsets_expire_after_their_retention(tmp_path: Path) -> None:
    with manual_node(tmp_path, offsets_retention_minutes="60") as node:
        node.create_topic()
        node.commit("g", 7)
        node.clock.advance(minutes=59)
        assert node.committed("g") == 7

        node.clock.advance(minutes=11)

        assert node.committed("g") == -1
        assert node.state("g") == "Dead"


def test_one_advance_ends_the_session_and_later_the_offsets_of_the_empty_group(
    node: ManualNode,
) -> None:
    node.create_topic()
    member = join_alone(node.client, "g", session_ms=30 * SECOND)
    node.commit("g", 7, member)

    result = node.clock.advance(days=8)

    assert [each.kind for each in result.timers] == ["session"]
    assert node.committed("g") == -1


def test_what_expires_after_the_last_spaced_round_is_not_left_for_later(tmp_path: Path) -> None:
    with manual_node(
        tmp_path, offsets_retention_minutes="60", offsets_retention_check_interval_ms="1"
    ) as node:
        node.create_topic()
        node.commit("g", 7)
        node.clock.advance(milliseconds=500)

        # A thousand rounds are 3,599 ms apart, so the last of them is 500 ms before the end.
        node.clock.advance(milliseconds=3_599_500)

        assert node.committed("g") == -1


def test_retention_deletes_segments(node: ManualNode) -> None:
    node.create_topic()
    node.produce("old", at=node.clock.now_ms)
    node.clock.advance(days=6)
    node.produce("new", at=node.clock.now_ms)
    assert values_in(node.fetch().records) == ["old", "new"]

    # One segment contains both records, so the later one counts.
    node.clock.advance(days=6)
    assert values_in(node.fetch().records) == ["old", "new"]
    node.clock.advance(days=2)

    fetched = node.fetch()
    assert ErrorCode(fetched.error_code) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert node.fetch(2).log_start_offset == 2


def test_compaction_rounds_are_complete(node: ManualNode) -> None:
    node.create_topic(cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.01")
    large = "x" * 20_000
    for number in range(40):
        node.produce(f"{number}{large}", at=node.clock.now_ms + 10 * number)
    assert len(node.read_values()) == 40

    result = node.clock.advance(minutes=5)

    assert result.rounds == {"log-cleaning": 1}
    kept = [text.removesuffix(large) for text in node.read_values()]
    assert kept == ["38", "39"]  # the last record is in the active segment


def test_idle_connections_are_closed(tmp_path: Path) -> None:
    with manual_node(tmp_path, connections_max_idle_ms=str(10 * MINUTE)) as node:
        node.create_topic()
        with RawClient(node.address) as waiting:
            sent = waiting.send(fetch_request(max_wait_ms=2_000), 12)

            node.clock.advance(minutes=21)

            with pytest.raises(Disconnected):
                node.client.ask(ApiVersionsRequest(), 3)
            assert waiting.receive(sent).error_code == 0


# The advance itself


def test_a_long_advance_takes_few_jumps(node: ManualNode, caplog: pytest.LogCaptureFixture) -> None:
    join_alone(node.client, "g", session_ms=30 * SECOND)

    month, century = node.clock.advance(days=30), node.clock.advance(days=36_000)

    assert [each.group for each in month.timers] == ["g"]
    for result in (month, century):
        assert 0 < max(result.rounds.values()) <= 1_001
        assert 0 < result.jumps <= 3 * 1_001 + len(result.timers)
    assert "loop-suspended" not in caplog.text


def test_short_rounds_do_not_make_an_advance_long(tmp_path: Path) -> None:
    with manual_node(
        tmp_path, log_retention_check_interval_ms="1", offsets_retention_check_interval_ms="1"
    ) as node:
        result = node.clock.advance(days=30)

        assert result.rounds["log-cleaning"] <= 1_001
        assert result.rounds["offset-expiry"] <= 1_001


def test_rounds_keep_their_interval_over_several_advances(node: ManualNode) -> None:
    rounds = [node.clock.advance(minutes=4).rounds.get("log-cleaning", 0) for _ in range(10)]

    assert sum(rounds) == 8  # every 5 minutes


def test_two_advances_at_the_same_time_add_up(node: ManualNode) -> None:
    began_ms = node.clock.now_ms
    threads = [
        threading.Thread(target=node.clock.advance, kwargs={"days": days}) for days in (2, 3)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert node.clock.now_ms == began_ms + 5 * DAY


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "advance takes seconds or milliseconds, or both; given: nothing"),
        ({"hours": 1}, "given: hours"),
        ({"seconds": 0}, "advance by 0 ms: the clock moves forward by at least 1 ms"),
        ({"seconds": "-5"}, "advance by -5000 ms"),
        ({"seconds": "soon"}, "seconds='soon': not a number"),
        ({"seconds": True}, "seconds=True: not a number"),
        ({"milliseconds": "nan"}, "milliseconds='nan': not between"),
        ({"seconds": 10**11}, "at most 3153600000000 ms"),
    ],
)
def test_an_impossible_advance_is_refused(
    node: ManualNode, body: dict[str, Any], error: str
) -> None:
    began_ms = node.clock.now_ms

    with pytest.raises(ControlError, match=error):
        node.thread.request("advance", body)

    assert node.clock.now_ms == began_ms


@pytest.mark.parametrize(
    "body", [{"seconds": 1.5}, {"seconds": "1.5"}, {"seconds": 1, "milliseconds": "500"}]
)
def test_numbers_may_be_text(node: ManualNode, body: dict[str, Any]) -> None:
    began_ms = node.clock.now_ms

    result = node.thread.request("advance", body)

    assert result["now_ms"] == began_ms + 1_500


def test_a_real_clock_cannot_be_moved(tmp_path: Path) -> None:
    with manual_node(tmp_path, kohort_clock="real") as node:
        assert node.thread.request("clock", {})["clock"] == "real"

        with pytest.raises(ControlError, match=r"the setting kohort\.clock=manual"):
            node.clock.advance(seconds=1)


def test_a_node_that_stops_moves_its_clock_no_further(tmp_path: Path) -> None:
    async def advance() -> None:
        server = Server(BrokerConfig(SETTINGS), tmp_path)
        await server.start("127.0.0.1", 0)
        server.stopping.set()
        try:
            await run_operation(server, "advance", {"seconds": 1})
        finally:
            await server.stop()

    with pytest.raises(ControlError, match="the node is stopping"):
        asyncio.run(advance())
