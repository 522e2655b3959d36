"""Acceptance tests for joins of new members, from "The consumer group rebalance process"."""

import pytest

from kohort.coordinator.commands import Protocol, Shutdown
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.groups.classic.states import ACTIONS, GroupRequest, GroupState
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import RequestRefused
from kohort.types import ErrorCode, MemberId
from tests.coordinator.driver import Driver
from tests.coordinator.scenario import (
    GROUP,
    INITIAL_DELAY_MS,
    SESSION_MS,
    Scenario,
    assignment_of,
    stable_pair,
    static_one,
    subscription_to,
)

MINUTE = 60_000


# handleJoinGroup


def test_empty_group_id_is_invalid() -> None:
    """The consumer group rebalance process: validateGroupStatus."""
    assert Scenario().join("a", group="").error is ErrorCode.INVALID_GROUP_ID


def test_join_during_loading_is_refused() -> None:
    """The consumer group rebalance process: COORDINATOR_LOAD_IN_PROGRESS in a join."""
    scenario = Scenario()
    scenario.driver.coordinator = Coordinator()
    assert scenario.join("a").error is ErrorCode.COORDINATOR_NOT_AVAILABLE

    scenario.driver.coordinator.start()

    assert scenario.join("a").error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_join_after_shutdown_is_refused() -> None:
    """The consumer group rebalance process: NOT_COORDINATOR in a join."""
    scenario = stable_pair()
    parked = scenario.join("a", "a-1")

    scenario.driver.decide(Shutdown())

    assert parked.error is ErrorCode.NOT_COORDINATOR
    assert scenario.join("b", "b-1").error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("session_ms", [6_000 - 1, 30 * MINUTE + 1])
def test_session_timeout_out_of_range_is_invalid(session_ms: int) -> None:
    """The consumer group rebalance process: group.min/max.session.timeout.ms."""
    refused = Scenario().join("a", session_ms=session_ms)

    assert refused.error is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 30 * MINUTE])
def test_session_timeout_at_the_limits_is_valid(session_ms: int) -> None:
    """The consumer group rebalance process: the range includes both ends."""
    assert Scenario().join("a", session_ms=session_ms).error is ErrorCode.MEMBER_ID_REQUIRED


def test_join_without_member_id_creates_the_group() -> None:
    """The consumer group rebalance process: new GroupMetadata(groupId, Empty)."""
    scenario = Scenario()
    assert scenario.describe().error is ErrorCode.GROUP_ID_NOT_FOUND

    scenario.join("a")

    assert scenario.state() == "Empty"


def test_member_id_in_an_unknown_group_is_unknown() -> None:
    """The consumer group rebalance process: group unknown, member id not."""
    scenario = Scenario()

    refused = scenario.join("a", "a-1").expect(RequestRefused)

    assert (refused.error, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "a-1")
    assert scenario.describe().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_new_member_of_a_full_group_is_refused() -> None:
    """The consumer group rebalance process: group.size >= groupMaxSize."""
    scenario = Scenario(Driver(config=GroupConfig(group_max_size=2)))
    scenario.form("a", "b")

    refused = scenario.join("c").expect(RequestRefused)

    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert scenario.state() == "Stable"


def test_last_member_to_rejoin_an_oversized_group_is_refused() -> None:
    """The consumer group rebalance process: groupIsOverCapacity, not isAwaitingJoin."""
    scenario = stable_pair()
    shrunk = Driver(config=GroupConfig(group_max_size=1), records=scenario.driver.records)
    shrunk.crash()
    scenario.driver = shrunk
    assert scenario.state() == "PreparingRebalance"

    first = scenario.join("a", "a-1")
    last = scenario.join("b", "b-1")

    assert last.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [member.member_id for member in first.joined.members] == ["a-1"]


def test_waiting_member_of_a_full_group_may_repeat_its_join() -> None:
    """The consumer group rebalance process: isAwaitingJoin is not turned away."""
    scenario = Scenario(Driver(config=GroupConfig(group_max_size=1)))
    scenario.admit("a")

    again = scenario.join("a", "a-1")
    scenario.advance(INITIAL_DELAY_MS)

    assert again.joined.generation == 1


def test_last_join_completes_the_join_phase() -> None:
    """The consumer group rebalance process: joinPurgatory.checkAndComplete."""
    scenario = stable_pair()
    first = scenario.join("a", "a-1")
    assert first.is_parked

    second = scenario.join("b", "b-1")

    assert (first.joined.generation, second.joined.generation) == (2, 2)


# doUnknownJoinGroup


@pytest.mark.parametrize("question", [GroupRequest.JOIN_NEW, GroupRequest.JOIN_KNOWN])
def test_join_to_a_dead_group_is_refused(question: GroupRequest) -> None:
    """The consumer group rebalance process: group.is(Dead)."""
    assert ACTIONS[question][GroupState.DEAD] is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("type_", "protocols"),
    [
        ("connect", subscription_to("t")),
        ("consumer", subscription_to("t", name="sticky")),
        ("consumer", ()),
    ],
)
def test_new_member_needs_a_common_protocol(type_: str, protocols: tuple[Protocol, ...]) -> None:
    """The consumer group rebalance process: supportsProtocols of an unknown member."""
    refused = stable_pair().join("c", type_=type_, protocols=protocols).expect(RequestRefused)

    assert (refused.error, refused.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")


@pytest.mark.parametrize(("type_", "protocols"), [("", subscription_to("t")), ("consumer", ())])
def test_empty_group_requires_protocol_type_and_protocols(
    type_: str, protocols: tuple[Protocol, ...]
) -> None:
    """The consumer group rebalance process: supportsProtocols of an empty group."""
    refused = Scenario().join("a", type_=type_, protocols=protocols)

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_new_dynamic_member_gets_member_id_required() -> None:
    """The consumer group rebalance process: addPendingMember, MEMBER_ID_REQUIRED."""
    scenario = stable_pair()

    refused = scenario.join("c").expect(RequestRefused)

    assert (refused.error, refused.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "c-1")
    assert scenario.state() == "Stable"


def test_unused_member_id_expires_after_the_session_timeout() -> None:
    """The consumer group rebalance process: addPendingMemberExpiration."""
    scenario = Scenario()
    scenario.join("a")
    assert scenario.driver.timers[TimerKey(TimerKind.PENDING, GROUP, MemberId("a-1"))] == SESSION_MS

    scenario.advance(SESSION_MS)

    assert scenario.join("a", "a-1").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalance_waits_for_pending_members_until_they_expire() -> None:
    """The consumer group rebalance process: the Pending Member List."""
    scenario = stable_pair()
    scenario.join("c", session_ms=6_000)
    joins = [scenario.join("a", "a-1"), scenario.join("b", "b-1")]
    assert all(join.is_parked for join in joins)

    scenario.advance(6_000)

    assert [join.joined.generation for join in joins] == [2, 2]


def test_old_client_is_added_without_member_id_required() -> None:
    """The consumer group rebalance process: requireKnownMemberId is false."""
    scenario = stable_pair()

    join = scenario.join("c", is_old=True)

    assert join.is_parked
    assert scenario.state() == "PreparingRebalance"


def test_new_static_member_is_added_without_member_id_required() -> None:
    """The consumer group rebalance process: groupInstanceId is defined."""
    scenario = stable_pair()

    join = scenario.join("c", instance="i")

    assert join.is_parked
    assert scenario.state() == "PreparingRebalance"


def test_restarted_static_member_is_replaced_without_a_rebalance() -> None:
    """The consumer group rebalance process: updateStaticMemberAndRebalance."""
    scenario = static_one()

    back = scenario.join("a", instance="i").joined

    assert (back.member_id, back.generation, back.skip_assignment) == ("a-2", 1, True)
    assert scenario.state() == "Stable"
    assert scenario.sync("a-2", 1, instance="i").assignment == assignment_of("a-1")
