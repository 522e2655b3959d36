"""Every invariant check detects a violation, and accepts a correct coordinator."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from kohort.coordinator.commands import CommitOffsets, EndTransaction, Protocol, Ticket
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.events import (
    Departure,
    GroupDeleted,
    GroupEvent,
    MemberGone,
    RebalanceEnded,
    StateChanged,
)
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.states import GroupState
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.records import ClassicGroupMetadata, GroupRemoved, OffsetRemoved
from kohort.coordinator.replies import CommitAnswered, HeartbeatAccepted, Joined, RequestRefused
from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Partition,
    ProducerId,
    Topic,
)
from tests.coordinator import invariants
from tests.coordinator.client_crowd import Client, Crowd

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

G = GroupId("g")
A, S, UNKNOWN = MemberId("a-1"), MemberId("s-2"), MemberId("x-9")


def stable_crowd() -> Crowd:
    """A stable group of a dynamic member, which leads, and a static one."""
    crowd = Crowd.with_config(GroupConfig())
    crowd.settle(Client("a", G, is_old=True), Client("s", G, InstanceId("i")))
    return crowd


def preparing_crowd() -> Crowd:
    """Another member has joined; the two that were there are yet to rejoin."""
    crowd = stable_crowd()
    crowd.join(Client("b", G, is_old=True))
    return crowd


def group_of(crowd: Crowd) -> ClassicGroup:
    return crowd.driver.coordinator.groups[G]


def member_of(crowd: Crowd, member_id: MemberId = A) -> ClassicMember:
    return group_of(crowd).members[member_id]


@dataclass
class Mutation:
    """What to do to a group so that some rule must complain, with a word from the complaint."""

    commit: Callable[[Crowd], object]
    complaint: str


def offer_something_else(crowd: Crowd) -> None:
    group_of(crowd).update_protocols(member_of(crowd), (Protocol(name="sticky", metadata=b""),))


def double_the_instance(crowd: Crowd) -> None:
    member_of(crowd).instance_id = InstanceId("i")


def form_a_later_generation(crowd: Crowd) -> None:
    group = group_of(crowd)
    assert group.stored is not None
    group.stored = replace(group.stored, generation=Generation(9))


def outgrow_the_limits(crowd: Crowd) -> None:
    crowd.driver.coordinator.config = GroupConfig(group_max_size=0)


def sync_unseen(crowd: Crowd) -> None:
    member_of(crowd).sync_ticket = Ticket(99)
    set_(crowd, pending_sync_members={A: None})


def set_(crowd: Crowd, **values: object) -> None:
    for name, each in values.items():
        setattr(group_of(crowd), name, each)


GROUP_CRIMES = (
    Mutation(lambda c: set_(c, joined_count=1), "counted as joined"),
    Mutation(lambda c: set_(c, supported_protocols={}), "protocols are counted as {}"),
    Mutation(lambda c: setattr(member_of(c), "member_id", UNKNOWN), "x-9 is stored under a-1"),
    Mutation(lambda c: set_(c, static_members={}), "but stored as {}"),
    Mutation(double_the_instance, "two members have the same instance id"),
    Mutation(lambda c: set_(c, pending_join_members={A: None}), "a-1 is a member and pending"),
    Mutation(
        lambda c: set_(c, pending_sync_members={UNKNOWN: None}),
        "x-9 is pending sync but not a member",
    ),
    Mutation(lambda c: set_(c, leader=None), "there is no leader"),
    Mutation(lambda c: set_(c, leader=UNKNOWN), "x-9 is the leader but not a member"),
    Mutation(lambda c: set_(c, state=EMPTY), "an empty group has members"),
    Mutation(lambda c: set_(c, members={}), "a Stable group has no members"),
    Mutation(lambda c: setattr(member_of(c), "join_ticket", 99), "a-1 has a join parked in Stable"),
    Mutation(lambda c: setattr(member_of(c), "sync_ticket", 99), "a-1 has a sync parked in Stable"),
    Mutation(
        lambda c: set_(c, state=PREPARING, pending_sync_members={A: None}),
        "a-1 is pending sync in Preparing",
    ),
    Mutation(lambda c: setattr(member_of(c), "is_new", True), "a-1 is still new"),
    Mutation(sync_unseen, "a-1 is pending sync, but has synced"),
    Mutation(lambda c: set_(c, state=COMPLETING), "has no rebalance trace"),
    Mutation(lambda c: set_(c, pending_replacement=member_of(c)), "a-1 is still pending"),
    Mutation(offer_something_else, "a-1 does not support range"),
    Mutation(form_a_later_generation, "but 9 is stored"),
    Mutation(lambda c: setattr(group_of(c), "stored", None), "stable, but not stored"),
    Mutation(lambda c: setattr(member_of(c), "assignment", b"more"), "stable in 1 as"),
    Mutation(outgrow_the_limits, "1 dynamic members, the limit is 0"),
    Mutation(lambda c: setattr(member_of(c), "session_timeout_ms", 1), "a session of 1 ms"),
)


def test_correct_coordinator_has_no_violations() -> None:
    for crowd in (stable_crowd(), preparing_crowd()):
        coordinator, timers = crowd.driver.coordinator, crowd.driver.timers

        assert list(invariants.find_group_violations(coordinator)) == []
        assert list(invariants.idle_timers(coordinator, timers)) == []
        assert list(invariants.missing_timers(coordinator, timers)) == []
        assert list(invariants.lost_tickets(coordinator, crowd.open)) == []
        assert list(invariants.repeated_replies(crowd.driver.replies)) == []
        assert list(invariants.decreasing_generations(crowd.driver.records)) == []
        assert list(invariants.event_gaps(crowd.driver.events)) == []


@pytest.mark.parametrize("mutation", GROUP_CRIMES, ids=lambda mutation: mutation.complaint)
def test_inconsistent_group_is_detected(mutation: Mutation) -> None:
    crowd = stable_crowd()

    mutation.commit(crowd)

    assert mutation.complaint in "\n".join(
        invariants.find_group_violations(crowd.driver.coordinator)
    )


def test_rebalance_that_should_have_ended_is_detected() -> None:
    crowd = stable_crowd()

    for member_id in (A, S):
        group_of(crowd).park_join(member_of(crowd, member_id), Ticket(99))
    set_(crowd, state=PREPARING, previous_state=STABLE)

    violations = list(invariants.wrong_phase(group_of(crowd)))
    assert "all members have joined, but the group is still preparing" in violations


def test_too_many_joined_members_are_detected() -> None:
    crowd = preparing_crowd()

    outgrow_the_limits(crowd)

    violations = list(invariants.find_group_violations(crowd.driver.coordinator))
    assert violations == ["g: 1 have joined, the limit is 0"]


def test_metadata_above_the_limit_is_detected() -> None:
    crowd = stable_crowd()
    crowd.commit_simply(GroupId("other"), crowd.offset(metadata="long"))

    crowd.driver.coordinator.config = GroupConfig(offset_metadata_max_bytes=3)

    violations = list(invariants.find_group_violations(crowd.driver.coordinator))
    assert violations == ["other: t1:0 has 4 bytes of metadata"]


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        (TimerKey(TimerKind.JOIN, GroupId("other")), "no such group"),
        (TimerKey(TimerKind.SESSION, G, UNKNOWN), "no such member"),
        (TimerKey(TimerKind.PENDING, G, UNKNOWN), "no such pending id"),
        (TimerKey(TimerKind.JOIN, G), "the group is Stable"),
        (TimerKey(TimerKind.INITIAL_DELAY, G), "the group is Stable"),
        (TimerKey(TimerKind.SYNC, G), "all members have synced"),
    ],
)
def test_timer_of_an_unknown_member_is_detected(key: TimerKey, complaint: str) -> None:
    coordinator = stable_crowd().driver.coordinator

    assert list(invariants.idle_timers(coordinator, [key])) == [f"{key}: {complaint}"]


def test_sync_timer_of_a_preparing_group_is_detected() -> None:
    coordinator = preparing_crowd().driver.coordinator
    key = TimerKey(TimerKind.SYNC, G)

    violations = list(invariants.idle_timers(coordinator, [key]))

    assert violations == [f"{key}: the group is PreparingRebalance"]


def test_missing_timers_are_detected() -> None:
    crowd = preparing_crowd()
    set_(crowd, pending_join_members={UNKNOWN: None}, pending_sync_members={A: None})

    violations = list(invariants.missing_timers(crowd.driver.coordinator, {}))

    assert violations == [
        "no expiry timer",
        "no session timer for g/a-1",
        "no session timer for g/s-2",
        "no session timer for g/b-5",
        "g/x-9 may stay pending forever",
        "g may stay in PreparingRebalance forever",
        "g may wait for syncs forever",
        "g has a wrong entry for its timer join",
    ]


def test_lost_tickets_are_detected() -> None:
    crowd = preparing_crowd()
    (parked,) = crowd.open
    member_of(crowd).join_ticket = Ticket(98)
    member_of(crowd, S).join_ticket = Ticket(98)

    violations = list(invariants.lost_tickets(crowd.driver.coordinator, [parked, Ticket(99)]))

    assert violations == [
        "ticket 98 is parked 2 times",
        "ticket 99 is open but not parked",
        "ticket 98 is parked but not open",
    ]


def test_second_reply_to_a_ticket_is_detected() -> None:
    replies = [HeartbeatAccepted(ticket=Ticket(each)) for each in (1, 2, 1)]

    assert list(invariants.repeated_replies(replies)) == ["ticket 1 was answered 2 times"]


def test_decreasing_generation_is_detected_unless_the_group_was_removed() -> None:
    second = formed(2)

    violating = list(invariants.decreasing_generations([second, formed(1)]))
    correct = list(invariants.decreasing_generations([second, GroupRemoved(group_id=G), formed(1)]))

    assert violating == ["g went from generation 2 to 1"]
    assert correct == []


def formed(generation: int) -> ClassicGroupMetadata:
    return ClassicGroupMetadata(
        group_id=G,
        protocol_type="consumer",
        generation=Generation(generation),
        protocol=None,
        leader=None,
        state_since_ms=Millis(0),
        members=(),
    )


def test_commit_with_another_generation_is_detected() -> None:
    command = CommitOffsets(ticket=Ticket(1), group_id=G, generation=Generation(3), offsets=())
    taken = Outcome([], [CommitAnswered(Ticket(1), (), ())], {}, [])
    refused = Outcome([], [RequestRefused(Ticket(1), ErrorCode.ILLEGAL_GENERATION)], {}, [])

    violating = list(invariants.stale_requests_accepted(command, Generation(4), taken))
    correct = list(invariants.stale_requests_accepted(command, Generation(3), taken))
    correct += invariants.stale_requests_accepted(command, Generation(4), refused)

    assert violating == ["a CommitOffsets of generation 3 was accepted in 4"]
    assert correct == []


def test_generation_unknown_to_its_members_is_detected() -> None:
    outcome = next(step.outcome for step in stable_crowd().steps if told_of(step.outcome))
    leader, follower = told_of(outcome)
    dynamic = replace(leader.members[1], instance_id=None)
    forgotten = replace(leader, members=(leader.members[0], dynamic))

    assert list(invariants.generations_without_leader(outcome)) == []
    assert list(invariants.generations_without_leader(replace(outcome, replies=[follower]))) == [
        "g has a generation with 0 leaders"
    ]
    assert list(invariants.generations_without_leader(replace(outcome, replies=[forgotten]))) == [
        "s-2 is in a generation but got no reply"
    ]


def told_of(outcome: Outcome) -> list[Joined]:
    return [reply for reply in outcome.replies if isinstance(reply, Joined)]


def test_removal_of_a_waiting_member_is_detected() -> None:
    gone = MemberGone(
        at=Millis(0),
        group_id=G,
        party=member_of(stable_crowd()).identity,
        departure=Departure.SESSION_EXPIRED,
    )
    refused = RequestRefused(ticket=Ticket(1), error=ErrorCode.UNKNOWN_MEMBER_ID)

    violating = list(invariants.removed_while_parked(Outcome([], [refused], {}, [gone])))
    correct = list(invariants.removed_while_parked(Outcome([], [], {}, [gone])))

    assert violating == ["a-1 was removed while its request was parked"]
    assert correct == []


def test_missing_state_change_event_is_detected() -> None:
    events = preparing_crowd().driver.events
    gap: list[GroupEvent] = [change(EMPTY, PREPARING), change(COMPLETING, STABLE)]
    deleted = GroupDeleted(at=Millis(0), group_id=G, is_expired=False)

    assert list(invariants.event_gaps(gap)) == [
        "g is PreparingRebalance, but changed from CompletingRebalance"
    ]
    assert list(invariants.event_gaps([gap[0], deleted, gap[1]])) == []
    assert "g began a rebalance during another one" in invariants.event_gaps([*events, *events])


def test_rebalance_end_without_start_is_detected() -> None:
    events = [event for event in stable_crowd().driver.events if not hasattr(event, "waited_for")]

    assert list(invariants.event_gaps(events)) == ["g ended a rebalance that had not begun"]


def test_rebalance_without_a_new_generation_is_detected() -> None:
    events = stable_crowd().driver.events

    unchanged = [
        replace(event, generation=event.generation_before)
        if isinstance(event, RebalanceEnded)
        else event
        for event in events
    ]

    assert list(invariants.event_gaps(unchanged)) == ["g has no generation after 0"]


def change(before: GroupState, after: GroupState) -> StateChanged:
    return StateChanged(at=Millis(0), group_id=G, before=before, after=after)


def test_coordinator_that_differs_from_its_records_is_detected() -> None:
    violating, correct = stable_crowd(), stable_crowd()
    form_a_later_generation(violating)

    found = list(invariants.differences(violating.driver.coordinator, correct.driver.coordinator))

    assert len(found) == 1
    assert "generation=9" in found[0]
    assert (
        list(invariants.differences(correct.driver.coordinator, stable_crowd().driver.coordinator))
        == []
    )


def test_wrong_committed_offset_is_detected() -> None:
    crowd = stable_crowd()
    client, producer_id = Client("p", GroupId("other")), ProducerId(7)
    crowd.commit_simply(client.group_id)
    crowd.commit_in_transaction(client, producer_id)
    crowd.send(EndTransaction(ticket=crowd.next_ticket(), producer_id=producer_id, is_commit=True))
    coordinator, records = crowd.driver.coordinator, crowd.driver.records
    place = ("other", "t1", 0)

    lost = list(invariants.wrong_offsets(coordinator, records[:-1]))
    removed = OffsetRemoved(group_id=client.group_id, topic=Topic("t1"), partition=Partition(0))
    kept = list(invariants.wrong_offsets(coordinator, [*records, removed]))

    assert list(invariants.wrong_offsets(coordinator, records)) == []
    assert [violation.startswith(f"{place} is OffsetCommitted(") for violation in lost] == [True]
    assert [violation.endswith("expected None") for violation in kept] == [True]
