"""000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: joining, up to the first id."""

import pytest

from kohort.coordinator.commands import Protocol, Shutdown
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import Refused
from kohort.coordinator.states import ANSWERS, GroupState, Question
from kohort.types import ErrorCode, MemberId
from tests.coordinator.driver import Driver
from tests.coordinator.scene import (
    GROUP,
    INITIAL_DELAY_MS,
    SESSION_MS,
    Scene,
    reads,
    share_of,
    stable_pair,
    static_one,
)

MINUTE = 60_000


# handleJoinGroup


def test_an_empty_group_id_is_invalid() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: validateGroupStatus."""
    assert Scene().join("a", group="").error is ErrorCode.INVALID_GROUP_ID


def test_a_join_while_loading_is_told_so() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: COORDINATOR_LOAD_IN_PROGRESS in a join."""
    scene = Scene()
    scene.driver.machine = Coordinator()
    assert scene.join("a").error is ErrorCode.COORDINATOR_NOT_AVAILABLE

    scene.driver.machine.start()

    assert scene.join("a").error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_join_after_the_coordinator_moved_is_told_so() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: NOT_COORDINATOR in a join."""
    scene = stable_pair()
    parked = scene.join("a", "a-1")

    scene.driver.decide(Shutdown())

    assert parked.error is ErrorCode.NOT_COORDINATOR
    assert scene.join("b", "b-1").error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("session_ms", [6_000 - 1, 30 * MINUTE + 1])
def test_a_session_timeout_out_of_range_is_invalid(session_ms: int) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: group.min/max.session.timeout.ms."""
    refused = Scene().join("a", session_ms=session_ms)

    assert refused.error is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 30 * MINUTE])
def test_a_session_timeout_on_the_edge_is_valid(session_ms: int) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: the range includes both ends."""
    assert Scene().join("a", session_ms=session_ms).error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_member_without_id_brings_a_new_group_into_being() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: new GroupMetadata(groupId, Empty)."""
    scene = Scene()
    assert scene.describe().error is ErrorCode.GROUP_ID_NOT_FOUND

    scene.join("a")

    assert scene.state() == "Empty"


def test_a_known_member_of_an_unknown_group_is_unknown() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: group unknown, member id not."""
    scene = Scene()

    refused = scene.join("a", "a-1").told(Refused)

    assert (refused.error, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "a-1")
    assert scene.describe().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_newcomer_finds_the_group_full() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: group.size >= groupMaxSize."""
    scene = Scene(Driver(limits=Limits(group_max_size=2)))
    scene.form("a", "b")

    refused = scene.join("c").told(Refused)

    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert scene.state() == "Stable"


def test_the_last_to_rejoin_an_overfull_group_is_turned_away() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: groupIsOverCapacity, not isAwaitingJoin."""
    scene = stable_pair()
    shrunk = Driver(limits=Limits(group_max_size=1), records=scene.driver.records)
    shrunk.crash()
    scene.driver = shrunk
    assert scene.state() == "PreparingRebalance"

    first = scene.join("a", "a-1")
    last = scene.join("b", "b-1")

    assert last.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [member.member_id for member in first.joined.members] == ["a-1"]


def test_a_member_of_a_full_group_that_waits_already_may_ask_again() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: isAwaitingJoin is not turned away."""
    scene = Scene(Driver(limits=Limits(group_max_size=1)))
    scene.admit("a")

    again = scene.join("a", "a-1")
    scene.advance(INITIAL_DELAY_MS)

    assert again.joined.generation == 1


def test_a_join_that_everyone_waited_for_completes_the_phase() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: joinPurgatory.checkAndComplete."""
    scene = stable_pair()
    first = scene.join("a", "a-1")
    assert first.is_parked

    second = scene.join("b", "b-1")

    assert (first.joined.generation, second.joined.generation) == (2, 2)


# doUnknownJoinGroup


@pytest.mark.parametrize("question", [Question.JOIN_NEW, Question.JOIN_KNOWN])
def test_a_dead_group_sends_joiners_to_look_for_a_coordinator(question: Question) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: group.is(Dead)."""
    assert ANSWERS[question][GroupState.DEAD] is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("type_", "protocols"),
    [("connect", reads("t")), ("consumer", reads("t", name="sticky")), ("consumer", ())],
)
def test_a_newcomer_needs_a_protocol_all_members_share(
    type_: str, protocols: tuple[Protocol, ...]
) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: supportsProtocols of an unknown member."""
    refused = stable_pair().join("c", type_=type_, protocols=protocols).told(Refused)

    assert (refused.error, refused.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")


@pytest.mark.parametrize(("type_", "protocols"), [("", reads("t")), ("consumer", ())])
def test_even_an_empty_group_needs_a_type_and_a_protocol(
    type_: str, protocols: tuple[Protocol, ...]
) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: supportsProtocols of an empty group."""
    refused = Scene().join("a", type_=type_, protocols=protocols)

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_dynamic_newcomer_is_given_an_id_and_told_to_come_back() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: addPendingMember, MEMBER_ID_REQUIRED."""
    scene = stable_pair()

    refused = scene.join("c").told(Refused)

    assert (refused.error, refused.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "c-1")
    assert scene.state() == "Stable"


def test_an_id_nobody_comes_back_with_is_dropped_after_the_session_timeout() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: addPendingMemberExpiration."""
    scene = Scene()
    scene.join("a")
    assert scene.driver.timers[TimerKey(TimerKind.PENDING, GROUP, MemberId("a-1"))] == SESSION_MS

    scene.advance(SESSION_MS)

    assert scene.join("a", "a-1").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_pending_members_until_they_expire() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: the Pending Member List."""
    scene = stable_pair()
    scene.join("c", session_ms=6_000)
    joins = [scene.join("a", "a-1"), scene.join("b", "b-1")]
    assert all(join.is_parked for join in joins)

    scene.advance(6_000)

    assert [join.joined.generation for join in joins] == [2, 2]


def test_a_client_that_cannot_come_back_is_added_at_once() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: requireKnownMemberId is false."""
    scene = stable_pair()

    join = scene.join("c", is_old=True)

    assert join.is_parked
    assert scene.state() == "PreparingRebalance"


def test_a_new_static_member_is_added_at_once() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: groupInstanceId is defined."""
    scene = stable_pair()

    join = scene.join("c", instance="i")

    assert join.is_parked
    assert scene.state() == "PreparingRebalance"


def test_a_static_member_that_restarts_takes_its_place_without_a_rebalance() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: updateStaticMemberAndRebalance."""
    scene = static_one()

    back = scene.join("a", instance="i").joined

    assert (back.member_id, back.generation, back.skip_assignment) == ("a-2", 1, True)
    assert scene.state() == "Stable"
    assert scene.sync("a-2", 1, instance="i").assignment == share_of("a-1")
