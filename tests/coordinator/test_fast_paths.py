"""The fast paths of the coordinator give the same outcomes as the plain paths."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.commands import Heartbeat, Protocol, Ticket
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.groups.classic import heartbeat
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.states import GroupState
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import (
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    Record,
    TransactionEnded,
)
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
def groups(draw: st.DrawFn) -> ClassicGroup:
    """A group in any state, with a member that may be static."""
    group = ClassicGroup(GroupId("g"))
    instance_id = draw(st.sampled_from([None, InstanceId("i")]))
    group.add(
        ClassicMember(
            member_id=MemberId("m"),
            instance_id=instance_id,
            client_id="c",
            client_host="h",
            rebalance_timeout_ms=Millis(60_000),
            session_timeout_ms=Millis(draw(st.integers(1, 100_000))),
            protocols=(Protocol(name="range", metadata=b""),),
        )
    )
    group.generation = Generation(draw(st.integers(0, 2)))
    group.state = draw(st.sampled_from(GroupState))
    return group


beats = st.builds(
    Heartbeat,
    ticket=st.integers(0, 9).map(Ticket),
    group_id=st.just(GroupId("g")),
    member_id=st.sampled_from(["m", "m", "unknown", ""]).map(MemberId),
    instance_id=st.sampled_from([None, None, InstanceId("i"), InstanceId("j")]),
    generation=st.integers(-1, 3).map(Generation),
)


@given(groups(), beats)
def test_heartbeat_fast_path_gives_the_same_outcome(
    group: ClassicGroup, command: Heartbeat
) -> None:
    builder = OutcomeBuilder(NOW, GroupConfig())
    heartbeat.heartbeat(builder, group, command)

    fast = heartbeat.find_usual_outcome(group, command)

    assert fast is None or fast == builder.outcome


@given(groups(), beats)
def test_heartbeat_of_a_stable_member_takes_the_fast_path(
    group: ClassicGroup, command: Heartbeat
) -> None:
    group.state = GroupState.STABLE
    usual = replace(
        command,
        member_id=MemberId("m"),
        instance_id=None,
        generation=group.generation,
    )

    assert heartbeat.find_usual_outcome(group, usual) is not None
    assert heartbeat.find_usual_outcome(None, usual) is None


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
        ClassicGroupMetadata,
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
def test_apply_all_equals_single_applies(
    outcomes: list[list[Record]],
) -> None:
    together, one_by_one = Coordinator(), Coordinator()

    for kept in outcomes:
        together.apply_all(kept)
        for record in kept:
            one_by_one.apply(record)

    assert together.hard_state() == one_by_one.hard_state()
