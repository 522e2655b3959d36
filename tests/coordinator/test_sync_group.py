"""Acceptance tests for SyncGroup.

From "The consumer group rebalance process" and "Kafka rebalance: SyncGroup".
"""

from collections.abc import Callable

import pytest

from kohort.coordinator.commands import Shutdown, SyncGroup, Ticket
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.groups.classic.states import ACTIONS, GroupRequest, GroupState
from kohort.coordinator.record_codec import decode_record, encode_record
from kohort.coordinator.records import ClassicGroupMetadata
from kohort.coordinator.replies import RequestRefused, Synced
from kohort.types import ErrorCode, Generation, MemberId, Millis, Partition
from kohort.wire.consumer_protocol import (
    Assignment,
    TopicPartitions,
    decode_assignment,
    encode_assignment,
)
from tests.coordinator.scenario import (
    GROUP,
    SESSION_MS,
    TOPIC,
    Scenario,
    assignment_of,
    completing_pair,
    stable_pair,
    static_one,
    subscription_to,
)

SHARES = {"a-1": assignment_of("a-1"), "b-1": assignment_of("b-1")}


def preparing_pair() -> Scenario:
    scenario = stable_pair()
    scenario.join("a", "a-1")
    return scenario


# The consumer group rebalance process: handleSyncGroup


def test_sync_during_loading_returns_rebalance_in_progress() -> None:
    """The consumer group rebalance process: COORDINATOR_LOAD_IN_PROGRESS in a sync."""
    sync = SyncGroup(
        ticket=Ticket(1), group_id=GROUP, member_id=MemberId("a-1"), generation=Generation(1)
    )

    coordinator = Coordinator()
    coordinator.start()
    outcome = coordinator.decide(sync, Millis(0))

    assert outcome.replies == [
        RequestRefused(ticket=Ticket(1), error=ErrorCode.REBALANCE_IN_PROGRESS)
    ]


def test_sync_after_shutdown_is_refused() -> None:
    """The consumer group rebalance process: any other error of validateGroupStatus."""
    scenario = stable_pair()
    scenario.driver.decide(Shutdown())

    assert scenario.sync("a-1", 1).error is ErrorCode.NOT_COORDINATOR


def test_sync_in_an_unknown_group_is_refused() -> None:
    """The consumer group rebalance process: getGroup finds None."""
    assert Scenario().sync("a-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


# The consumer group rebalance process: doSyncGroup


def test_sync_in_a_dead_group_is_refused() -> None:
    """The consumer group rebalance process: group.is(Dead) in doSyncGroup."""
    assert ACTIONS[GroupRequest.SYNC][GroupState.DEAD] is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_sync_of_a_fenced_static_member_is_refused() -> None:
    """The consumer group rebalance process: isStaticMemberFenced in doSyncGroup."""
    scenario = static_one()
    scenario.join("a", instance="i")

    assert scenario.sync("a-1", 1, instance="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_sync_of_an_unknown_member_is_refused() -> None:
    """The consumer group rebalance process: not group.has(memberId) in doSyncGroup."""
    assert completing_pair().sync("z-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("generation", [0, 2])
def test_sync_with_another_generation_is_refused(generation: int) -> None:
    """The consumer group rebalance process: generationId != group.generationId."""
    assert completing_pair().sync("a-1", generation).error is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("type_", "protocol"), [("connect", "range"), ("consumer", "sticky"), (None, "sticky")]
)
def test_sync_with_another_protocol_is_refused(type_: str | None, protocol: str) -> None:
    """The consumer group rebalance process: protocolType and protocolName in a sync."""
    refused = completing_pair().sync("a-1", 1, type_=type_, protocol=protocol)

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_sync_in_an_empty_group_is_refused() -> None:
    """The consumer group rebalance process: doSyncGroup in Empty."""
    scenario = stable_pair()
    scenario.leave("a-1", "b-1")

    assert scenario.sync("a-1", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_in_preparing_rebalance_returns_rebalance_in_progress() -> None:
    """The consumer group rebalance process: doSyncGroup in PreparingRebalance."""
    assert preparing_pair().sync("b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_sync_in_completing_rebalance_waits_for_the_leader() -> None:
    """The consumer group rebalance process: awaitingSyncCallback."""
    scenario = completing_pair()

    follower = scenario.sync("b-1", 1)
    assert follower.is_parked
    leader = scenario.sync("a-1", 1, SHARES)

    assert (leader.assignment, follower.assignment) == (assignment_of("a-1"), assignment_of("b-1"))
    assert scenario.state() == "Stable"


def test_failed_append_of_the_assignment_refuses_all_syncs_and_rebalances() -> None:
    """The consumer group rebalance process: resetAndPropagateAssignmentError."""
    scenario = completing_pair()
    follower = scenario.sync("b-1", 1)
    scenario.driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS

    leader = scenario.sync("a-1", 1, SHARES)

    assert leader.error is follower.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scenario.state() == "PreparingRebalance"
    assert scenario.heartbeat("b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_sync_in_a_stable_group_is_answered_at_once() -> None:
    """The consumer group rebalance process: doSyncGroup in Stable."""
    synced = stable_pair().sync("b-1", 1, type_="consumer", protocol="range").expect(Synced)

    assert synced.assignment == assignment_of("b-1")
    assert (synced.protocol_type, synced.protocol) == ("consumer", "range")


def test_sync_in_a_stable_group_does_not_restart_the_session() -> None:
    """The consumer group rebalance process: schedules the next heartbeat.

    The coordinator of the document restarts the session here; since Kafka 4 it does not.
    """
    scenario = stable_pair()
    deadline = scenario.session_deadline("b-1")
    scenario.advance(1_000)

    scenario.sync("b-1", 1)

    assert scenario.session_deadline("b-1") == deadline


# Kafka rebalance: SyncGroup: Sending the request


def test_sync_of_the_leader_has_the_assignment_of_every_member() -> None:
    """Kafka rebalance: SyncGroup: Sending the request, groupAssignment."""
    scenario = completing_pair()
    partitions = (Partition(0), Partition(1))
    share = Assignment(assigned_partitions=(TopicPartitions(topic=TOPIC, partitions=partitions),))
    follower = scenario.sync("b-1", 1)

    scenario.sync("a-1", 1, {"a-1": b"", "b-1": encode_assignment(share)})

    assert decode_assignment(follower.assignment) == share


# Kafka rebalance: SyncGroup: handleSyncGroup, doSyncGroup


def test_only_the_assignment_of_the_leader_is_used() -> None:
    """Kafka rebalance: SyncGroup: only the leader is handled."""
    scenario = completing_pair()

    follower = scenario.sync("b-1", 1, {"a-1": b"stolen", "b-1": b"stolen"})
    leader = scenario.sync("a-1", 1, SHARES)

    assert follower.outcome.records == []
    assert (leader.assignment, follower.assignment) == (assignment_of("a-1"), assignment_of("b-1"))


def test_omitted_members_get_an_empty_assignment() -> None:
    """Kafka rebalance: SyncGroup: fill any missing members."""
    scenario = completing_pair()

    leader = scenario.sync("a-1", 1, {"a-1": assignment_of("a-1")})

    (formed,) = leader.outcome.records
    assert isinstance(formed, ClassicGroupMetadata)
    assert [member.assignment for member in formed.members] == [assignment_of("a-1"), b""]
    assert scenario.sync("b-1", 1).assignment == b""


def test_assignments_of_unknown_members_are_ignored() -> None:
    """Kafka rebalance: SyncGroup: assignment(member.memberId)."""
    scenario = completing_pair()

    leader = scenario.sync("a-1", 1, SHARES | {"z-1": b"unknown"})

    (formed,) = leader.outcome.records
    assert isinstance(formed, ClassicGroupMetadata)
    assert [member.member_id for member in formed.members] == ["a-1", "b-1"]


def test_assignment_is_stored_before_any_response() -> None:
    """Kafka rebalance: SyncGroup: stored in __consumer_offsets."""
    scenario = completing_pair()
    follower = scenario.sync("b-1", 1)

    leader = scenario.sync("a-1", 1, SHARES)

    (record,) = leader.outcome.records
    assert isinstance(record, ClassicGroupMetadata)
    answered = {reply.ticket for reply in leader.outcome.replies}
    assert answered == {leader.ticket, follower.ticket}
    stored = encode_record(record)
    assert decode_record(stored.key, stored.value) == record


def test_assignment_of_an_earlier_generation_is_ignored() -> None:
    """Kafka rebalance: SyncGroup: another member may have joined."""
    scenario = completing_pair()
    follower = scenario.sync("b-1", 1)
    scenario.admit("c")

    leader = scenario.sync("a-1", 1, SHARES)

    assert follower.error is leader.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.outcome.records == []


# Kafka rebalance: SyncGroup: setAndPropagateAssignment, response to the client


def test_assignment_of_every_member_is_stored() -> None:
    """Kafka rebalance: SyncGroup: setAndPropagateAssignment."""
    scenario = completing_pair()

    scenario.sync("a-1", 1, SHARES)

    assert {each.member_id: each.assignment for each in scenario.describe().members} == SHARES


def test_only_parked_syncs_are_answered() -> None:
    """Kafka rebalance: SyncGroup: awaitingSyncCallback != null."""
    scenario = completing_pair()

    leader = scenario.sync("a-1", 1, SHARES)

    assert [reply.ticket for reply in leader.outcome.replies] == [leader.ticket]


def test_session_starts_with_the_sync_response() -> None:
    """Kafka rebalance: SyncGroup: heartbeat monitoring starts."""
    scenario = completing_pair()
    scenario.sync("b-1", 1)
    scenario.advance(5_000)
    scenario.heartbeat("a-1", 1)
    scenario.sync("a-1", 1, SHARES)

    assert scenario.session_deadline("b-1") == scenario.driver.now + SESSION_MS
    scenario.advance(SESSION_MS - 1)
    scenario.heartbeat("a-1", 1)
    scenario.advance(1)

    assert [each.member_id for each in scenario.describe().members] == ["a-1"]


def test_parked_sync_suspends_the_session_timeout() -> None:
    """Kafka rebalance: SyncGroup: the callback is completed later."""
    scenario = completing_pair()
    follower = scenario.sync("b-1", 1)
    for _ in range(3):
        scenario.advance(SESSION_MS - 1)
        scenario.heartbeat("a-1", 1)

    scenario.sync("a-1", 1, SHARES)

    assert follower.assignment == assignment_of("b-1")


@pytest.mark.parametrize("make", [preparing_pair, completing_pair, stable_pair])
def test_every_generation_needs_a_new_assignment(make: Callable[[], Scenario]) -> None:
    """Kafka rebalance: SyncGroup: summary."""
    scenario = make()
    generation = scenario.join("b", "b-1", protocols=subscription_to("t", "u"))
    leader = scenario.join("a", "a-1")

    follower = scenario.sync("b-1", generation.joined.generation)
    assert follower.is_parked
    scenario.sync("a-1", leader.joined.generation, {"b-1": b"new"})

    assert follower.assignment == b"new"
