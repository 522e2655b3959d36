"""Every invariant can be broken: each rule is shown a guilty machine beside the innocent one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from kohort.coordinator.commands import CommitOffsets, EndTransaction, Protocol, Ticket
from kohort.coordinator.group import Group, Member
from kohort.coordinator.limits import Limits
from kohort.coordinator.notes import (
    Departure,
    GroupDeleted,
    MemberGone,
    Note,
    RebalanceEnded,
    StateChanged,
)
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.records import GenerationFormed, GroupRemoved, OffsetRemoved
from kohort.coordinator.replies import CommitAnswered, HeartbeatHeard, Joined, Refused
from kohort.coordinator.states import GroupState
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
from tests.coordinator.crowd import Client, Crowd

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

G = GroupId("g")
A, S, NOBODY = MemberId("a-1"), MemberId("s-2"), MemberId("nobody")


def stable_crowd() -> Crowd:
    """A stable group of a dynamic member, which leads, and a static one."""
    crowd = Crowd.with_limits(Limits())
    crowd.settle(Client("a", G, is_old=True), Client("s", G, InstanceId("i")))
    return crowd


def preparing_crowd() -> Crowd:
    """Another member has joined; the two that were there are yet to rejoin."""
    crowd = stable_crowd()
    crowd.join(Client("b", G, is_old=True))
    return crowd


def group_of(crowd: Crowd) -> Group:
    return crowd.driver.machine.groups[G]


def member_of(crowd: Crowd, member_id: MemberId = A) -> Member:
    return group_of(crowd).roster.members[member_id]


@dataclass
class Crime:
    """What to do to a group so that some rule must complain, with a word from the complaint."""

    commit: Callable[[Crowd], object]
    complaint: str


def offer_something_else(crowd: Crowd) -> None:
    group_of(crowd).roster.update_protocols(
        member_of(crowd), (Protocol(name="sticky", metadata=b""),)
    )


def double_the_instance(crowd: Crowd) -> None:
    member_of(crowd).instance_id = InstanceId("i")


def form_a_later_generation(crowd: Crowd) -> None:
    group = group_of(crowd)
    assert group.formed is not None
    group.formed = replace(group.formed, generation=Generation(9))


def outgrow_the_limits(crowd: Crowd) -> None:
    crowd.driver.machine.limits = Limits(group_max_size=0)


def sync_unseen(crowd: Crowd) -> None:
    member_of(crowd).sync_ticket = Ticket(99)
    set_(crowd, unsynced={A: None})


def set_(crowd: Crowd, **values: object) -> None:
    for name, each in values.items():
        setattr(group_of(crowd).roster, name, each)


GROUP_CRIMES = (
    Crime(lambda c: set_(c, joined_count=1), "counted as joined"),
    Crime(lambda c: set_(c, support={}), "protocols are counted as {}"),
    Crime(lambda c: setattr(member_of(c), "member_id", NOBODY), "nobody is filed under a-1"),
    Crime(lambda c: set_(c, instances={}), "but known as {}"),
    Crime(double_the_instance, "two members are one instance"),
    Crime(lambda c: set_(c, pending={A: None}), "a-1 is a member and pending"),
    Crime(lambda c: set_(c, unsynced={NOBODY: None}), "nobody is to sync but no member"),
    Crime(lambda c: set_(c, leader=None), "nobody leads"),
    Crime(lambda c: set_(c, leader=NOBODY), "nobody leads but is no member"),
    Crime(lambda c: set_(c, state=EMPTY), "an empty group has members"),
    Crime(lambda c: set_(c, members={}), "a Stable group has no members"),
    Crime(lambda c: setattr(member_of(c), "join_ticket", 99), "a-1 has a join parked in Stable"),
    Crime(lambda c: setattr(member_of(c), "sync_ticket", 99), "a-1 has a sync parked in Stable"),
    Crime(lambda c: set_(c, state=PREPARING, unsynced={A: None}), "a-1 is to sync in Preparing"),
    Crime(lambda c: setattr(member_of(c), "is_new", True), "a-1 is still new"),
    Crime(sync_unseen, "a-1 is to sync, but has done so"),
    Crime(lambda c: set_(c, state=COMPLETING), "has no story"),
    Crime(lambda c: set_(c, arriving=member_of(c)), "a-1 never arrived"),
    Crime(offer_something_else, "a-1 cannot speak range"),
    Crime(form_a_later_generation, "though 9 was formed"),
    Crime(lambda c: setattr(group_of(c), "formed", None), "stable, but never kept"),
    Crime(lambda c: setattr(member_of(c), "assignment", b"more"), "stable in 1 as"),
    Crime(outgrow_the_limits, "1 dynamic members, the limit is 0"),
    Crime(lambda c: setattr(member_of(c), "session_timeout_ms", 1), "a session of 1 ms"),
)


def test_an_innocent_machine_has_no_offences() -> None:
    for crowd in (stable_crowd(), preparing_crowd()):
        machine, timers = crowd.driver.machine, crowd.driver.timers

        assert list(invariants.find_group_offences(machine)) == []
        assert list(invariants.idle_timers(machine, timers)) == []
        assert list(invariants.missing_timers(machine, timers)) == []
        assert list(invariants.lost_tickets(machine, crowd.open)) == []
        assert list(invariants.repeated_answers(crowd.driver.replies)) == []
        assert list(invariants.generations_gone_back(crowd.driver.records)) == []
        assert list(invariants.broken_stories(crowd.driver.notes)) == []


@pytest.mark.parametrize("crime", GROUP_CRIMES, ids=lambda crime: crime.complaint)
def test_a_wrong_group_is_noticed(crime: Crime) -> None:
    crowd = stable_crowd()

    crime.commit(crowd)

    assert crime.complaint in "\n".join(invariants.find_group_offences(crowd.driver.machine))


def test_a_group_that_prepares_without_need_is_noticed() -> None:
    crowd = stable_crowd()

    for member_id in (A, S):
        group_of(crowd).roster.park_join(member_of(crowd, member_id), Ticket(99))
    set_(crowd, state=PREPARING, previous_state=STABLE)

    offences = list(invariants.wrong_phase(group_of(crowd)))
    assert "everyone has joined, and still it prepares" in offences


def test_too_many_joined_members_are_noticed() -> None:
    crowd = preparing_crowd()

    outgrow_the_limits(crowd)

    offences = list(invariants.find_group_offences(crowd.driver.machine))
    assert offences == ["g: 1 have joined, the limit is 0"]


def test_metadata_over_the_limit_is_noticed() -> None:
    crowd = stable_crowd()
    crowd.commit_simply(GroupId("other"), crowd.offset(metadata="long"))

    crowd.driver.machine.limits = Limits(offset_metadata_max_bytes=3)

    offences = list(invariants.find_group_offences(crowd.driver.machine))
    assert offences == ["other: t1:0 carries 4 bytes of metadata"]


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        (TimerKey(TimerKind.JOIN, GroupId("other")), "no such group"),
        (TimerKey(TimerKind.SESSION, G, NOBODY), "no such member"),
        (TimerKey(TimerKind.PENDING, G, NOBODY), "no such pending id"),
        (TimerKey(TimerKind.JOIN, G), "the group is Stable"),
        (TimerKey(TimerKind.INITIAL_DELAY, G), "the group is Stable"),
        (TimerKey(TimerKind.SYNC, G), "everyone has synced"),
    ],
)
def test_a_timer_of_nothing_is_noticed(key: TimerKey, complaint: str) -> None:
    machine = stable_crowd().driver.machine

    assert list(invariants.idle_timers(machine, [key])) == [f"{key}: {complaint}"]


def test_a_sync_timer_of_a_preparing_group_is_noticed() -> None:
    machine = preparing_crowd().driver.machine
    key = TimerKey(TimerKind.SYNC, G)

    offences = list(invariants.idle_timers(machine, [key]))

    assert offences == [f"{key}: the group is PreparingRebalance"]


def test_missing_timers_are_noticed() -> None:
    crowd = preparing_crowd()
    set_(crowd, pending={NOBODY: None}, unsynced={A: None})

    offences = list(invariants.missing_timers(crowd.driver.machine, {}))

    assert offences == [
        "nobody will look for expired offsets",
        "nobody watches g/a-1",
        "nobody watches g/s-2",
        "nobody watches g/b-5",
        "g/nobody may stay pending for ever",
        "g may prepare for ever",
        "g may wait for syncs for ever",
        "g is wrong about its timer join",
    ]


def test_lost_tickets_are_noticed() -> None:
    crowd = preparing_crowd()
    (parked,) = crowd.open
    member_of(crowd).join_ticket = Ticket(98)
    member_of(crowd, S).join_ticket = Ticket(98)

    offences = list(invariants.lost_tickets(crowd.driver.machine, [parked, Ticket(99)]))

    assert offences == [
        "ticket 98 is parked 2 times",
        "ticket 99 waits for nothing",
        "ticket 98 is parked but nobody waits",
    ]


def test_a_second_answer_is_noticed() -> None:
    replies = [HeartbeatHeard(ticket=Ticket(each)) for each in (1, 2, 1)]

    assert list(invariants.repeated_answers(replies)) == ["ticket 1 was answered 2 times"]


def test_a_generation_that_goes_back_is_noticed_unless_the_group_was_removed() -> None:
    second = formed(2)

    guilty = list(invariants.generations_gone_back([second, formed(1)]))
    innocent = list(invariants.generations_gone_back([second, GroupRemoved(group_id=G), formed(1)]))

    assert guilty == ["g went from generation 2 to 1"]
    assert innocent == []


def formed(generation: int) -> GenerationFormed:
    return GenerationFormed(
        group_id=G,
        protocol_type="consumer",
        generation=Generation(generation),
        protocol=None,
        leader=None,
        state_since_ms=Millis(0),
        members=(),
    )


def test_speaking_for_another_generation_is_noticed() -> None:
    command = CommitOffsets(ticket=Ticket(1), group_id=G, generation=Generation(3), offsets=())
    taken = Outcome(replies=[CommitAnswered(ticket=Ticket(1), offsets=(), errors=())])
    refused = Outcome(replies=[Refused(ticket=Ticket(1), error=ErrorCode.ILLEGAL_GENERATION)])

    guilty = list(invariants.stale_answers(command, Generation(4), taken))
    innocent = list(invariants.stale_answers(command, Generation(3), taken))
    innocent += invariants.stale_answers(command, Generation(4), refused)

    assert guilty == ["a CommitOffsets of generation 3 was taken in 4"]
    assert innocent == []


def test_a_generation_whose_leader_or_members_do_not_know_of_it_is_noticed() -> None:
    outcome = next(step.outcome for step in stable_crowd().steps if told_of(step.outcome))
    leader, follower = told_of(outcome)
    dynamic = replace(leader.members[1], instance_id=None)
    forgotten = replace(leader, members=(leader.members[0], dynamic))

    assert list(invariants.unled_generations(outcome)) == []
    assert list(invariants.unled_generations(replace(outcome, replies=[follower]))) == [
        "g has a generation that 0 members lead"
    ]
    assert list(invariants.unled_generations(replace(outcome, replies=[forgotten]))) == [
        "s-2 is in a generation that it was not told of"
    ]


def told_of(outcome: Outcome) -> list[Joined]:
    return [reply for reply in outcome.replies if isinstance(reply, Joined)]


def test_a_member_that_is_removed_while_it_waits_is_noticed() -> None:
    gone = MemberGone(
        at=Millis(0),
        group_id=G,
        party=member_of(stable_crowd()).party,
        departure=Departure.SESSION_EXPIRED,
    )
    refused = Refused(ticket=Ticket(1), error=ErrorCode.UNKNOWN_MEMBER_ID)

    guilty = list(invariants.removed_waiters(Outcome(replies=[refused], notes=[gone])))
    innocent = list(invariants.removed_waiters(Outcome(notes=[gone])))

    assert guilty == ["a-1 was removed while it waited"]
    assert innocent == []


def test_a_gap_in_the_story_is_noticed() -> None:
    notes = preparing_crowd().driver.notes
    gap: list[Note] = [change(EMPTY, PREPARING), change(COMPLETING, STABLE)]
    deleted = GroupDeleted(at=Millis(0), group_id=G, is_expired=False)

    assert list(invariants.broken_stories(gap)) == [
        "g was PreparingRebalance, then was CompletingRebalance and Stable"
    ]
    assert list(invariants.broken_stories([gap[0], deleted, gap[1]])) == []
    assert "g began a rebalance within another" in invariants.broken_stories([*notes, *notes])


def test_an_end_without_a_beginning_is_noticed() -> None:
    notes = [note for note in stable_crowd().driver.notes if not hasattr(note, "waited_for")]

    assert list(invariants.broken_stories(notes)) == ["g ended a rebalance that had not begun"]


def test_a_rebalance_without_a_new_generation_is_noticed() -> None:
    notes = stable_crowd().driver.notes

    standing = [
        replace(note, generation=note.generation_before)
        if isinstance(note, RebalanceEnded)
        else note
        for note in notes
    ]

    assert list(invariants.broken_stories(standing)) == ["g was rebalanced and is still in 0"]


def change(before: GroupState, after: GroupState) -> StateChanged:
    return StateChanged(at=Millis(0), group_id=G, before=before, after=after)


def test_a_machine_that_differs_from_its_records_is_noticed() -> None:
    guilty, innocent = stable_crowd(), stable_crowd()
    form_a_later_generation(guilty)

    found = list(invariants.differences(guilty.driver.machine, innocent.driver.machine))

    assert len(found) == 1
    assert "generation=9" in found[0]
    assert (
        list(invariants.differences(innocent.driver.machine, stable_crowd().driver.machine)) == []
    )


def test_an_offset_that_should_not_count_is_noticed() -> None:
    crowd = stable_crowd()
    nobody, producer_id = Client("p", GroupId("other")), ProducerId(7)
    crowd.commit_simply(nobody.group_id)
    crowd.commit_in_transaction(nobody, producer_id)
    crowd.ask(EndTransaction(ticket=crowd.next_ticket(), producer_id=producer_id, is_commit=True))
    machine, records = crowd.driver.machine, crowd.driver.records
    place = ("other", "t1", 0)

    lost = list(invariants.wrong_offsets(machine, records[:-1]))
    removed = OffsetRemoved(group_id=nobody.group_id, topic=Topic("t1"), partition=Partition(0))
    kept = list(invariants.wrong_offsets(machine, [*records, removed]))

    assert list(invariants.wrong_offsets(machine, records)) == []
    assert [offence.startswith(f"{place} is OffsetCommitted(") for offence in lost] == [True]
    assert [offence.endswith("should be None") for offence in kept] == [True]
