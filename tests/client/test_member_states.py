"""Whatever state a member is in, whatever happens: it has an answer, and never fails."""

import pytest

from kohort.client.member import events
from kohort.client.member.events import Event, Loss, Position, Question, RequestNumber
from kohort.client.member.machine import MemberState
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, Offset, Partition, Topic
from tests.client.tracing import Player
from tests.client.translating import refusal_of
from tests.coordinator.tracing import Stanza

AT = TopicPartition(Topic("t1"), Partition(0))
POSITIONS = {AT: Position(offset=Offset(5))}

STORIES: dict[str, tuple[MemberState, list[str]]] = {
    "never-used": (MemberState.UNJOINED, []),
    "not-yet-polled": (MemberState.UNJOINED, ["subscribe t1"]),
    "assigned-by-itself": (MemberState.UNJOINED, ["poll", "commit 1 t1:0=1"]),
    "failed": (
        MemberState.UNJOINED,
        ["subscribe t1", "poll", "answer find b1", "answer join INVALID_GROUP_ID"],
    ),
    "looking-for-the-coordinator": (MemberState.PREPARING, ["subscribe t1", "poll"]),
    "waiting-for-poll": (
        MemberState.PREPARING,
        ["given t1:0", "advance 3s", "answer heartbeat REBALANCE_IN_PROGRESS"],
    ),
    "asking-for-positions": (
        MemberState.PREPARING,
        [
            "member auto-commit=5s",
            "given t1:0",
            "advance 3s",
            "answer heartbeat REBALANCE_IN_PROGRESS",
            "poll",
        ],
    ),
    "committing-before-a-revocation": (
        MemberState.PREPARING,
        [
            "member auto-commit=5s",
            "given t1:0",
            "advance 3s",
            "answer heartbeat REBALANCE_IN_PROGRESS",
            "poll",
            "positions t1:0=5",
        ],
    ),
    "calling-its-listener": (
        MemberState.PREPARING,
        ["given t1:0", "advance 3s", "answer heartbeat UNKNOWN_MEMBER_ID", "poll"],
    ),
    "waiting-to-try-again": (
        MemberState.PREPARING,
        ["subscribe t1", "poll", "answer find b1", "answer join COORDINATOR_LOAD_IN_PROGRESS"],
    ),
    "joining": (MemberState.JOINING, ["subscribe t1", "poll", "answer find b1"]),
    "following": (
        MemberState.SYNCING,
        ["subscribe t1", "poll", "answer find b1", "answer join gen=1 member=m2 leader=m1"],
    ),
    "leading-without-knowing-the-topics": (
        MemberState.SYNCING,
        ["subscribe t1", "poll", "answer find b1", "answer join gen=1 member=m1 m1[t1]"],
    ),
    "about-to-tell-of-its-assignment": (
        MemberState.ASSIGNING,
        [
            "subscribe t1",
            "poll",
            "answer find b1",
            "answer join gen=1 member=m2 leader=m1",
            "answer sync t1:0",
        ],
    ),
    "stable": (MemberState.STABLE, ["given t1:0", "commit 1 t1:0=1", "advance 3s"]),
    "stable-without-coordinator": (
        MemberState.STABLE,
        ["given t1:0", "advance 3s", "lose heartbeat disconnected"],
    ),
    "leaving": (MemberState.LEAVING, ["given t1:0", "close"]),
    "ended": (MemberState.ENDED, ["close"]),
}

HAPPENINGS: dict[str, Event] = {
    "subscribed": events.Subscribed(topics=frozenset({Topic("t2")})),
    "unsubscribed": events.Unsubscribed(),
    "polled": events.Polled(),
    "told-positions": events.PositionsTold(positions=POSITIONS),
    "callback-returned": events.CallbackReturned(),
    "commit-asked": events.CommitAsked(question=Question(8), positions=POSITIONS),
    "committed-asked": events.CommittedAsked(question=Question(9), partitions=frozenset({AT})),
    "withdrawn": events.Withdrawn(question=Question(1)),
    "rejoin-asked": events.RejoinAsked(reason="on a whim"),
    "closed": events.Closed(),
    "answered-out-of-the-blue": events.Answered(number=RequestNumber(99), body=None),
    "lost-out-of-the-blue": events.Unanswered(number=RequestNumber(99), loss=Loss.TIMED_OUT),
    "topics-seen": events.TopicsSeen(partitions={Topic("t1"): 3}),
    "woken": events.Woken(),
}

each_story = pytest.mark.parametrize("story", STORIES)


def told(story: str) -> Player:
    state, lines = STORIES[story]
    player = Player()
    for line in lines:
        player.perform(Stanza([line], []))
    assert player.member.state is state
    return player


def test_there_is_a_story_for_every_state_and_a_happening_for_every_event() -> None:
    assert {state for state, _ in STORIES.values()} == set(MemberState)
    assert {type(event) for event in HAPPENINGS.values()} == set(Event.__args__)


@each_story
@pytest.mark.parametrize("happening", HAPPENINGS)
def test_every_event_has_an_answer_in_every_state(story: str, happening: str) -> None:
    player = told(story)

    player.feed(HAPPENINGS[happening])

    due = player.member.deadline()
    assert due is None or due > player.now or happening != "woken"


@each_story
def test_any_request_may_be_answered_or_lost_in_any_state(story: str) -> None:
    sent = told(story).requests
    for name, send in sent.items():
        for happening in (
            events.Answered(
                number=send.number, body=refusal_of(send.body, ErrorCode.UNKNOWN_MEMBER_ID)
            ),
            events.Unanswered(number=send.number, loss=Loss.DISCONNECTED),
        ):
            player = told(story)

            player.feed(happening)

            assert player.requests[name].number == send.number


@each_story
def test_two_events_in_a_row_have_answers_too(story: str) -> None:
    for first in HAPPENINGS.values():
        for second in HAPPENINGS.values():
            player = told(story)

            player.feed(first)
            player.feed(second)

            player.perform(Stanza(["advance +10m"], []))
