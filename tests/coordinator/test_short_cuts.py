"""The coordinator's quick ways come to what its general ones come to."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator import membership
from kohort.coordinator.commands import Heartbeat, Protocol, Ticket
from kohort.coordinator.group import Group, Member
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.records import (
    GenerationFormed,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    Record,
    TransactionEnded,
)
from kohort.coordinator.states import GroupState
from kohort.coordinator.turn import Turn
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
)

NOW = Millis(1_000_000)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """A group in any state, with a member that may be static."""
    group = Group(GroupId("g"))
    roster = group.roster
    instance_id = draw(st.sampled_from([None, InstanceId("i")]))
    roster.add(
        Member(
            member_id=MemberId("m"),
            instance_id=instance_id,
            client_id="c",
            client_host="h",
            rebalance_timeout_ms=Millis(60_000),
            session_timeout_ms=Millis(draw(st.integers(1, 100_000))),
            protocols=(Protocol(name="range", metadata=b""),),
        )
    )
    roster.generation = Generation(draw(st.integers(0, 2)))
    roster.state = draw(st.sampled_from(GroupState))
    return group


beats = st.builds(
    Heartbeat,
    ticket=st.integers(0, 9).map(Ticket),
    group_id=st.just(GroupId("g")),
    member_id=st.sampled_from(["m", "m", "stranger", ""]).map(MemberId),
    instance_id=st.sampled_from([None, None, InstanceId("i"), InstanceId("j")]),
    generation=st.integers(-1, 3).map(Generation),
)


@given(groups(), beats)
def test_a_heartbeat_that_is_heard_at_once_is_heard_in_the_same_words(
    group: Group, command: Heartbeat
) -> None:
    turn = Turn(NOW, Limits())
    membership.heartbeat(turn, group, command)

    heard = membership.find_heard(group, command, NOW)

    assert heard is None or heard == turn.outcome


@given(groups(), beats)
def test_a_member_in_good_standing_is_heard_at_once(group: Group, command: Heartbeat) -> None:
    group.roster.state = GroupState.STABLE
    usual = replace(
        command,
        member_id=MemberId("m"),
        instance_id=None,
        generation=group.roster.generation,
    )

    assert membership.find_heard(group, usual, NOW) is not None
    assert membership.find_heard(None, usual, NOW) is None


names = st.sampled_from(["g", "h"]).map(GroupId)
topics = st.sampled_from(["t", "u"]).map(Topic)
partitions = st.integers(0, 1).map(Partition)
offsets = st.builds(
    OffsetCommitted,
    group_id=names,
    topic=topics,
    partition=partitions,
    offset=st.integers(0, 99).map(Offset),
    commit_ms=st.just(NOW),
)
pending = offsets.map(
    lambda each: replace(each, producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0))
)
records: st.SearchStrategy[Record] = st.one_of(
    offsets,
    offsets,
    pending,
    st.builds(OffsetRemoved, group_id=names, topic=topics, partition=partitions),
    st.builds(GroupRemoved, group_id=names),
    st.builds(TransactionEnded, producer_id=st.just(ProducerId(1)), is_commit=st.booleans()),
    st.builds(
        GenerationFormed,
        group_id=names,
        protocol_type=st.just("consumer"),
        generation=st.integers(0, 3).map(Generation),
        protocol=st.none(),
        leader=st.none(),
        state_since_ms=st.just(NOW),
        members=st.just(()),
    ),
)


@given(st.lists(st.lists(records, max_size=8), max_size=6))
def test_records_applied_together_are_as_if_applied_one_by_one(
    outcomes: list[list[Record]],
) -> None:
    together, one_by_one = Coordinator(), Coordinator()

    for kept in outcomes:
        together.apply_all(kept)
        for record in kept:
            one_by_one.apply(record)

    assert together.hard_state() == one_by_one.hard_state()
