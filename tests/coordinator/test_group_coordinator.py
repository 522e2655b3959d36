"""Acceptance tests for group metadata, requests and states.

From "Kafka source code, part 8: GroupCoordinator".
"""

from collections.abc import Callable, Mapping

import pytest

from kohort.coordinator.commands import (
    CommitOffsets,
    FetchOffsets,
    ListGroups,
    OffsetToCommit,
    Protocol,
    Shutdown,
    Ticket,
)
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.states import LEGAL, GroupState
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.records import ClassicGroupMetadata
from kohort.coordinator.replies import GroupsListed, LeaveAnswered, OffsetsFetched, RequestRefused
from kohort.types import ErrorCode, Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from tests.coordinator.driver import Driver
from tests.coordinator.scenario import (
    GROUP,
    SESSION_MS,
    TOPIC,
    Scenario,
    SentRequest,
    assignment_of,
    completing_pair,
    stable_pair,
    subscription_to,
)

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

PREVIOUS: Mapping[GroupState, set[GroupState]] = {
    DEAD: {STABLE, PREPARING, COMPLETING, EMPTY, DEAD},
    COMPLETING: {PREPARING},
    STABLE: {COMPLETING},
    PREPARING: {STABLE, COMPLETING, EMPTY},
    EMPTY: {PREPARING},
}
"""The document's table: the valid previous states of each state."""


def listed(scenario: Scenario, *states: str) -> list[tuple[str, str, str]]:
    asked = scenario.send(lambda ticket: ListGroups(ticket=ticket, states=states))
    groups = asked.expect(GroupsListed).groups
    return [(each.group_id, each.protocol_type, each.state) for each in groups]


# ApiKeys


def test_every_listed_api_is_answered() -> None:
    """Kafka source code, part 8: GroupCoordinator: ApiKeys."""
    scenario = stable_pair()

    asked: dict[str, SentRequest] = {
        "OFFSET_COMMIT": scenario.commit({0: 7}, "a-1", 1),
        "OFFSET_FETCH": scenario.send(lambda ticket: FetchOffsets(ticket=ticket, group_id=GROUP)),
        "JOIN_GROUP": scenario.join("b", "b-1"),
        "SYNC_GROUP": scenario.sync("b-1", 1),
        "LIST_GROUPS": scenario.send(lambda ticket: ListGroups(ticket=ticket)),
        "HEARTBEAT": scenario.heartbeat("b-1", 1),
    }

    assert {api: each.error for api, each in asked.items()} == dict.fromkeys(asked, ErrorCode.NONE)
    assert scenario.describe().error is ErrorCode.NONE


# Start


def test_coordinator_answers_only_when_active() -> None:
    """Kafka source code, part 8: GroupCoordinator: Start, isActive."""
    coordinator = Coordinator()
    ask = ListGroups(ticket=Ticket(1))

    before = coordinator.decide(ask, Millis(0))
    coordinator.start()
    loading = coordinator.decide(ask, Millis(0))
    coordinator.resume(Millis(0))
    after = coordinator.decide(ask, Millis(0))

    assert before.replies == [
        RequestRefused(ticket=Ticket(1), error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    ]
    assert loading.replies == [
        RequestRefused(ticket=Ticket(1), error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    ]
    assert after.replies == [GroupsListed(ticket=Ticket(1), groups=())]


def test_stopped_coordinator_refuses_all_requests() -> None:
    """Kafka source code, part 8: GroupCoordinator: Start, and its end."""
    scenario = stable_pair()
    rejoin = scenario.join("a", "a-1")

    scenario.driver.decide(Shutdown())

    assert rejoin.error is ErrorCode.NOT_COORDINATOR
    assert scenario.join("c").error is ErrorCode.NOT_COORDINATOR
    assert scenario.heartbeat("b-1", 1).error is ErrorCode.NOT_COORDINATOR


def test_expiry_runs_periodically_from_the_start() -> None:
    """Kafka source code, part 8: GroupCoordinator: Start, expired entries are deleted."""
    scenario = Scenario(Driver(config=GroupConfig(offsets_retention_ms=Millis(3_600_000))))
    expiry = TimerKey(TimerKind.EXPIRY)
    assert scenario.driver.timers[expiry] == 600_000
    scenario.commit({0: 1})

    scenario.advance(3_600_000)

    assert scenario.driver.timers[expiry] == 4_200_000
    assert listed(scenario) == []


# GroupMetadata


def test_new_group_is_empty_with_generation_zero() -> None:
    """Kafka source code, part 8: GroupCoordinator: state, generationId = 0."""
    scenario = Scenario()

    (formed,) = scenario.join("a").outcome.records

    assert isinstance(formed, ClassicGroupMetadata)
    assert (formed.generation, formed.leader, formed.protocol, formed.members) == (
        0,
        None,
        None,
        (),
    )
    assert scenario.state() == "Empty"


def test_stable_group_has_generation_leader_protocol_and_members() -> None:
    """Kafka source code, part 8: GroupCoordinator: leaderId, protocol, members."""
    scenario = stable_pair()

    formed = scenario.driver.records[-1]

    assert isinstance(formed, ClassicGroupMetadata)
    assert (formed.generation, formed.leader, formed.protocol) == (1, "a-1", "range")
    assert [each.member_id for each in formed.members] == ["a-1", "b-1"]
    described = scenario.describe()
    assert (described.state, described.protocol_type, described.protocol) == (
        "Stable",
        "consumer",
        "range",
    )


def test_group_counts_members_awaiting_join() -> None:
    """Kafka source code, part 8: GroupCoordinator: numMembersAwaitingJoin."""
    scenario = Scenario()
    scenario.form("a", "b", "c")

    joins = [scenario.join(client, f"{client}-1") for client in "ab"]
    assert all(join.is_parked for join in joins)
    joins.append(scenario.join("c", "c-1"))

    assert [join.joined.generation for join in joins] == [2, 2, 2]


def test_group_chooses_a_protocol_that_all_members_support() -> None:
    """Kafka source code, part 8: GroupCoordinator: supportedProtocols."""
    scenario = Scenario()
    both = (*subscription_to(TOPIC, name="sticky"), *subscription_to(TOPIC, name="range"))
    joins = [
        scenario.admit("a", protocols=both),
        scenario.admit("b", protocols=both),
        scenario.admit("c", protocols=subscription_to(TOPIC, name="range")),
    ]

    scenario.settle(*joins)

    assert {join.joined.protocol for join in joins} == {"range"}


def test_committed_offsets_are_stored_per_partition() -> None:
    """Kafka source code, part 8: GroupCoordinator: offsets."""
    scenario = stable_pair()

    scenario.commit({0: 10, 1: 20}, "a-1", 1)
    scenario.commit({1: 21}, "b-1", 1)

    assert scenario.committed(0, 1, 2) == [10, 21, -1]


def test_offset_is_visible_only_after_its_commit_succeeded() -> None:
    """Kafka source code, part 8: GroupCoordinator: pendingOffsetCommits."""
    scenario = stable_pair()
    scenario.commit({0: 10}, "a-1", 1)
    scenario.driver.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    failed = scenario.commit({0: 11}, "a-1", 1)

    assert failed.error is ErrorCode.NOT_COORDINATOR
    assert scenario.committed(0) == [10]


# MemberMetadata


def test_member_has_id_client_id_and_host() -> None:
    """Kafka source code, part 8: GroupCoordinator: memberId, clientId."""
    leader, follower = stable_pair().describe().members

    assert (leader.member_id, leader.client_id, leader.client_host) == ("a-1", "a", "/10.0.0.1")
    assert (follower.member_id, follower.client_id, follower.client_host) == (
        "b-1",
        "b",
        "/10.0.0.2",
    )
    assert leader.instance_id is None
    assert leader.metadata == subscription_to(TOPIC)[0].metadata
    assert leader.assignment == assignment_of("a-1")


def test_member_timeouts_and_subscription_are_stored() -> None:
    """Kafka source code, part 8: GroupCoordinator: sessionTimeoutMs."""
    scenario = Scenario()
    both = subscription_to("t", "u")
    scenario.settle(scenario.admit("a", session_ms=12_000, rebalance_ms=34_000, protocols=both))

    formed = scenario.sync("a-1", 1).outcome.records[0]

    assert isinstance(formed, ClassicGroupMetadata)
    (member,) = formed.members
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (12_000, 34_000)
    assert member.subscription == both[0].metadata
    assert (formed.group_id, formed.protocol_type) == (GROUP, "consumer")


def test_metadata_of_the_chosen_protocol_is_described() -> None:
    """Kafka source code, part 8: GroupCoordinator: List[(String, Array[Byte])]."""
    scenario = Scenario()
    offered = (Protocol(name="sticky", metadata=b"s"), Protocol(name="range", metadata=b"r"))
    scenario.settle(scenario.admit("a", protocols=offered))
    scenario.sync("a-1", 1)

    described = scenario.describe()

    assert (described.protocol, described.members[0].metadata) == ("sticky", b"s")


# Offset requests


def test_offset_fetch_returns_some_or_all_offsets() -> None:
    """Kafka source code, part 8: GroupCoordinator: OFFSET_FETCH."""
    scenario = stable_pair()
    scenario.commit({0: 10, 3: 30}, "a-1", 1)

    everything = scenario.send(lambda ticket: FetchOffsets(ticket=ticket, group_id=GROUP))

    assert scenario.committed(3, 1) == [30, -1]
    offsets = everything.expect(OffsetsFetched).offsets
    assert [(each.partition, each.offset) for each in offsets] == [(0, 10), (3, 30)]


def test_offset_commit_stores_metadata_and_leader_epoch() -> None:
    """Kafka source code, part 8: GroupCoordinator: OFFSET_COMMIT."""
    scenario = stable_pair()
    offset = OffsetToCommit(
        topic=Topic("t"),
        partition=Partition(0),
        offset=Offset(10),
        leader_epoch=4,
        metadata="half of it",
    )

    scenario.send(
        lambda ticket: CommitOffsets(
            ticket=ticket,
            group_id=GROUP,
            member_id=MemberId("a-1"),
            generation=Generation(1),
            offsets=(offset,),
        )
    )

    asked = scenario.send(lambda ticket: FetchOffsets(ticket=ticket, group_id=GROUP))
    (fetched,) = asked.expect(OffsetsFetched).offsets
    assert (fetched.offset, fetched.leader_epoch, fetched.metadata) == (10, 4, "half of it")


# Group requests


def test_describe_groups_returns_every_member() -> None:
    """Kafka source code, part 8: GroupCoordinator: DESCRIBE_GROUPS."""
    stable, completing = stable_pair().describe(), completing_pair().describe()

    assert [each.member_id for each in stable.members] == ["a-1", "b-1"]
    assert [each.assignment for each in completing.members] == [b"", b""]
    assert completing.protocol == ""


def test_list_groups_returns_every_group_and_state() -> None:
    """Kafka source code, part 8: GroupCoordinator: LIST_GROUPS."""
    scenario = stable_pair()
    scenario.commit({0: 1}, group="simple")

    assert listed(scenario) == [("g", "consumer", "Stable"), ("simple", "", "Empty")]
    assert listed(scenario, "empty") == [("simple", "", "Empty")]


def test_leave_group_removes_the_member_and_changes_the_state() -> None:
    """Kafka source code, part 8: GroupCoordinator: LEAVE_GROUP, state transition."""
    scenario = stable_pair()

    one = scenario.leave("a-1")
    assert scenario.state() == "PreparingRebalance"
    both = scenario.leave("b-1", "z-1")

    assert scenario.state() == "Empty"
    errors = [each.error for asked in (one, both) for each in asked.expect(LeaveAnswered).members]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


# Heartbeat requests


def test_missing_heartbeats_remove_a_member() -> None:
    """Kafka source code, part 8: GroupCoordinator: HEARTBEAT, on the server."""
    scenario = stable_pair()
    scenario.advance(SESSION_MS - 1)
    scenario.heartbeat("b-1", 1)

    scenario.advance(1)

    assert [each.member_id for each in scenario.describe().members] == ["b-1"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (stable_pair, ErrorCode.NONE),
        (completing_pair, ErrorCode.NONE),
        (Scenario, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeat_response_reports_the_group_state(
    make: Callable[[], Scenario], error: ErrorCode
) -> None:
    """Kafka source code, part 8: GroupCoordinator: HEARTBEAT, on the client."""
    assert make().heartbeat("a-1", 1).error is error


def test_heartbeat_with_an_old_generation_is_refused() -> None:
    """Kafka source code, part 8: GroupCoordinator: HEARTBEAT, old generations."""
    assert stable_pair().heartbeat("a-1", 0).error is ErrorCode.ILLEGAL_GENERATION


# Group state machine


@pytest.mark.parametrize("state", list(GroupState))
def test_state_has_the_previous_states_of_the_document(state: GroupState) -> None:
    """Kafka source code, part 8: GroupCoordinator: Group state machine.

    A dead group here is gone: it is never declared dead again.
    """
    previous = {before for before, after in LEGAL.items() if state in after}

    assert previous == PREVIOUS[state] - {DEAD}


@pytest.mark.parametrize(
    ("before", "after"),
    [(one, other) for one in GroupState for other in GroupState if one not in PREVIOUS[other]],
)
def test_transition_that_is_not_in_the_document_is_illegal(
    before: GroupState, after: GroupState
) -> None:
    """Kafka source code, part 8: GroupCoordinator: valid transitions."""
    with pytest.raises(AssertionError, match=f"{before} may not become {after}"):
        ClassicGroup(GroupId("g"), state=before).move(after, Millis(0))
