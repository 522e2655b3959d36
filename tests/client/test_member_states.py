"""A member handles every event in every state."""

import pytest

from kohort.client.member import member_events
from kohort.client.member.member import MemberState
from kohort.client.member.member_events import (
    CallId,
    MemberEvent,
    OffsetAndMetadata,
    RequestFailure,
    RequestId,
)
from kohort.types import ErrorCode, Offset, Partition, Topic, TopicPartition
from tests.client.coordinator_bridge import error_response
from tests.client.trace_player import Player
from tests.coordinator.trace_player import Stanza

AT = TopicPartition(Topic("t1"), Partition(0))
POSITIONS = {AT: OffsetAndMetadata(offset=Offset(5))}

SETUPS: dict[str, tuple[MemberState, list[str]]] = {
    "never-used": (MemberState.UNJOINED, []),
    "not-yet-polled": (MemberState.UNJOINED, ["subscribe t1"]),
    "manually-assigned": (MemberState.UNJOINED, ["poll", "commit 1 t1:0=1"]),
    "failed": (
        MemberState.UNJOINED,
        ["subscribe t1", "poll", "response find b1", "response join INVALID_GROUP_ID"],
    ),
    "searching-the-coordinator": (MemberState.PREPARING, ["subscribe t1", "poll"]),
    "waiting-for-poll": (
        MemberState.PREPARING,
        ["given t1:0", "advance 3s", "response heartbeat REBALANCE_IN_PROGRESS"],
    ),
    "requesting-positions": (
        MemberState.PREPARING,
        [
            "member auto-commit=5s",
            "given t1:0",
            "advance 3s",
            "response heartbeat REBALANCE_IN_PROGRESS",
            "poll",
        ],
    ),
    "committing-before-a-revocation": (
        MemberState.PREPARING,
        [
            "member auto-commit=5s",
            "given t1:0",
            "advance 3s",
            "response heartbeat REBALANCE_IN_PROGRESS",
            "poll",
            "positions t1:0=5",
        ],
    ),
    "calling-its-listener": (
        MemberState.PREPARING,
        ["given t1:0", "advance 3s", "response heartbeat UNKNOWN_MEMBER_ID", "poll"],
    ),
    "waiting-to-retry": (
        MemberState.PREPARING,
        ["subscribe t1", "poll", "response find b1", "response join COORDINATOR_LOAD_IN_PROGRESS"],
    ),
    "joining": (MemberState.JOINING, ["subscribe t1", "poll", "response find b1"]),
    "following": (
        MemberState.SYNCING,
        ["subscribe t1", "poll", "response find b1", "response join gen=1 member=m2 leader=m1"],
    ),
    "leading-without-metadata": (
        MemberState.SYNCING,
        ["subscribe t1", "poll", "response find b1", "response join gen=1 member=m1 m1[t1]"],
    ),
    "before-the-assignment-listener": (
        MemberState.ASSIGNING,
        [
            "subscribe t1",
            "poll",
            "response find b1",
            "response join gen=1 member=m2 leader=m1",
            "response sync t1:0",
        ],
    ),
    "stable": (MemberState.STABLE, ["given t1:0", "commit 1 t1:0=1", "advance 3s"]),
    "stable-without-coordinator": (
        MemberState.STABLE,
        ["given t1:0", "advance 3s", "fail heartbeat disconnected"],
    ),
    "leaving": (MemberState.LEAVING, ["given t1:0", "close"]),
    "ended": (MemberState.ENDED, ["close"]),
}

EVENTS: dict[str, MemberEvent] = {
    "subscribed": member_events.Subscribed(topics=frozenset({Topic("t2")})),
    "unsubscribed": member_events.Unsubscribed(),
    "polled": member_events.Polled(),
    "positions-reported": member_events.PositionsReported(positions=POSITIONS),
    "callback-returned": member_events.CallbackReturned(),
    "commit-requested": member_events.CommitRequested(call_id=CallId(8), positions=POSITIONS),
    "fetch-committed": member_events.CommittedRequested(
        call_id=CallId(9), partitions=frozenset({AT})
    ),
    "cancelled": member_events.CallCancelled(call_id=CallId(1)),
    "rejoin-requested": member_events.RejoinRequested(reason="on a whim"),
    "close-requested": member_events.CloseRequested(),
    "unexpected-response": member_events.ResponseReceived(request_id=RequestId(99), body=None),
    "unexpected-failure": member_events.RequestFailed(
        request_id=RequestId(99), failure=RequestFailure.TIMED_OUT
    ),
    "topics-updated": member_events.TopicsUpdated(partitions={Topic("t1"): 3}),
    "deadline-reached": member_events.DeadlineReached(),
}

each_setup = pytest.mark.parametrize("setup", SETUPS)


def player_after(setup: str) -> Player:
    state, lines = SETUPS[setup]
    player = Player()
    for line in lines:
        player.perform(Stanza([line], []))
    assert player.member.state is state
    return player


def test_every_state_and_event_is_covered() -> None:
    assert {state for state, _ in SETUPS.values()} == set(MemberState)
    assert {type(event) for event in EVENTS.values()} == set(MemberEvent.__args__)


@each_setup
@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_handled_in_every_state(setup: str, event: str) -> None:
    player = player_after(setup)

    player.feed(EVENTS[event])

    due = player.member.deadline()
    assert due is None or due > player.now or event != "deadline-reached"


@each_setup
def test_responses_and_failures_are_handled_in_every_state(setup: str) -> None:
    sent = player_after(setup).requests
    for name, send in sent.items():
        for event in (
            member_events.ResponseReceived(
                request_id=send.request_id,
                body=error_response(send.body, ErrorCode.UNKNOWN_MEMBER_ID),
            ),
            member_events.RequestFailed(
                request_id=send.request_id, failure=RequestFailure.DISCONNECTED
            ),
        ):
            player = player_after(setup)

            player.feed(event)

            assert player.requests[name].request_id == send.request_id


@each_setup
def test_pairs_of_events_are_handled(setup: str) -> None:
    for first in EVENTS.values():
        for second in EVENTS.values():
            player = player_after(setup)

            player.feed(first)
            player.feed(second)

            player.perform(Stanza(["advance +10m"], []))
            due = player.member.deadline()
            assert due is None or due > player.now
