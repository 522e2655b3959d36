"""004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: what it keeps and answers."""

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
from kohort.coordinator.group import Roster
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.records import GenerationFormed
from kohort.coordinator.replies import GroupsListed, LeaveAnswered, OffsetsFetched, Refused
from kohort.coordinator.states import LEGAL, GroupState
from kohort.types import ErrorCode, Generation, MemberId, Millis, Offset, Partition, Topic
from tests.coordinator.driver import Driver
from tests.coordinator.scene import (
    GROUP,
    SESSION_MS,
    TOPIC,
    Asked,
    Scene,
    completing_pair,
    reads,
    share_of,
    stable_pair,
)

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

PREVIOUS: Mapping[GroupState, set[GroupState]] = {
    DEAD: {STABLE, PREPARING, COMPLETING, EMPTY, DEAD},
    COMPLETING: {PREPARING},
    STABLE: {COMPLETING},
    PREPARING: {STABLE, COMPLETING, EMPTY},
    EMPTY: {PREPARING},
}
"""The document's table: 右为前置状态, on the right are the states that may come before."""


def listed(scene: Scene, *states: str) -> list[tuple[str, str, str]]:
    asked = scene.ask(lambda ticket: ListGroups(ticket=ticket, states=states))
    groups = asked.told(GroupsListed).groups
    return [(each.group_id, each.protocol_type, each.state) for each in groups]


# ApiKeys


def test_every_api_the_document_lists_is_answered() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: ApiKeys."""
    scene = stable_pair()

    asked: dict[str, Asked] = {
        "OFFSET_COMMIT": scene.commit({0: 7}, "a-1", 1),
        "OFFSET_FETCH": scene.ask(lambda ticket: FetchOffsets(ticket=ticket, group_id=GROUP)),
        "JOIN_GROUP": scene.join("b", "b-1"),
        "SYNC_GROUP": scene.sync("b-1", 1),
        "LIST_GROUPS": scene.ask(lambda ticket: ListGroups(ticket=ticket)),
        "HEARTBEAT": scene.heartbeat("b-1", 1),
    }

    assert {api: each.error for api, each in asked.items()} == dict.fromkeys(asked, ErrorCode.NONE)
    assert scene.describe().error is ErrorCode.NONE


# 启动


def test_a_coordinator_answers_only_once_it_is_active() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: 启动, isActive."""
    machine = Coordinator()
    ask = ListGroups(ticket=Ticket(1))

    before = machine.decide(ask, Millis(0))
    machine.start()
    loading = machine.decide(ask, Millis(0))
    machine.resume(Millis(0))
    after = machine.decide(ask, Millis(0))

    assert before.replies == [Refused(ticket=Ticket(1), error=ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert loading.replies == [
        Refused(ticket=Ticket(1), error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    ]
    assert after.replies == [GroupsListed(ticket=Ticket(1), groups=())]


def test_a_coordinator_that_stopped_sends_everyone_away() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: 启动, and its end."""
    scene = stable_pair()
    rejoin = scene.join("a", "a-1")

    scene.driver.decide(Shutdown())

    assert rejoin.error is ErrorCode.NOT_COORDINATOR
    assert scene.join("c").error is ErrorCode.NOT_COORDINATOR
    assert scene.heartbeat("b-1", 1).error is ErrorCode.NOT_COORDINATOR


def test_expired_metadata_is_looked_for_from_the_start_on_and_again_and_again() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: 启动, 删除过期的."""
    scene = Scene(Driver(limits=Limits(offsets_retention_ms=Millis(3_600_000))))
    expiry = TimerKey(TimerKind.EXPIRY)
    assert scene.driver.timers[expiry] == 600_000
    scene.commit({0: 1})

    scene.advance(3_600_000)

    assert scene.driver.timers[expiry] == 4_200_000
    assert listed(scene) == []


# GroupMetadata


def test_a_new_group_is_empty_and_of_generation_zero() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: state, generationId = 0."""
    scene = Scene()

    (formed,) = scene.join("a").outcome.records

    assert isinstance(formed, GenerationFormed)
    assert (formed.generation, formed.leader, formed.protocol, formed.members) == (
        0,
        None,
        None,
        (),
    )
    assert scene.state() == "Empty"


def test_a_formed_group_has_a_generation_a_leader_a_protocol_and_members() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: leaderId, protocol, members."""
    scene = stable_pair()

    formed = scene.driver.records[-1]

    assert isinstance(formed, GenerationFormed)
    assert (formed.generation, formed.leader, formed.protocol) == (1, "a-1", "range")
    assert [each.member_id for each in formed.members] == ["a-1", "b-1"]
    described = scene.describe()
    assert (described.state, described.protocol_type, described.protocol) == (
        "Stable",
        "consumer",
        "range",
    )


def test_the_group_counts_whom_it_still_waits_for() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: numMembersAwaitingJoin."""
    scene = Scene()
    scene.form("a", "b", "c")

    joins = [scene.join(client, f"{client}-1") for client in "ab"]
    assert all(join.is_parked for join in joins)
    joins.append(scene.join("c", "c-1"))

    assert [join.joined.generation for join in joins] == [2, 2, 2]


def test_the_group_counts_who_supports_what_and_takes_what_all_support() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: supportedProtocols."""
    scene = Scene()
    both = (*reads(TOPIC, name="sticky"), *reads(TOPIC, name="range"))
    joins = [
        scene.admit("a", protocols=both),
        scene.admit("b", protocols=both),
        scene.admit("c", protocols=reads(TOPIC, name="range")),
    ]

    scene.settle(*joins)

    assert {join.joined.protocol for join in joins} == {"range"}


def test_committed_offsets_are_kept_by_partition() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: offsets."""
    scene = stable_pair()

    scene.commit({0: 10, 1: 20}, "a-1", 1)
    scene.commit({1: 21}, "b-1", 1)

    assert scene.committed(0, 1, 2) == [10, 21, -1]


def test_an_offset_counts_only_once_its_commit_succeeded() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: pendingOffsetCommits."""
    scene = stable_pair()
    scene.commit({0: 10}, "a-1", 1)
    scene.driver.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    failed = scene.commit({0: 11}, "a-1", 1)

    assert failed.error is ErrorCode.NOT_COORDINATOR
    assert scene.committed(0) == [10]


# MemberMetadata


def test_a_member_is_described_by_its_id_its_client_and_its_host() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: memberId, clientId."""
    leader, follower = stable_pair().describe().members

    assert (leader.member_id, leader.client_id, leader.client_host) == ("a-1", "a", "/10.0.0.1")
    assert (follower.member_id, follower.client_id, follower.client_host) == (
        "b-1",
        "b",
        "/10.0.0.2",
    )
    assert leader.instance_id is None
    assert leader.metadata == reads(TOPIC)[0].metadata
    assert leader.assignment == share_of("a-1")


def test_a_members_timeouts_and_subscription_are_kept_with_the_group() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: sessionTimeoutMs."""
    scene = Scene()
    both = reads("t", "u")
    scene.settle(scene.admit("a", session_ms=12_000, rebalance_ms=34_000, protocols=both))

    formed = scene.sync("a-1", 1).outcome.records[0]

    assert isinstance(formed, GenerationFormed)
    (member,) = formed.members
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (12_000, 34_000)
    assert member.subscription == both[0].metadata
    assert (formed.group_id, formed.protocol_type) == (GROUP, "consumer")


def test_of_several_supported_protocols_the_chosen_ones_metadata_is_shown() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: List[(String, Array[Byte])]."""
    scene = Scene()
    offered = (Protocol(name="sticky", metadata=b"s"), Protocol(name="range", metadata=b"r"))
    scene.settle(scene.admit("a", protocols=offered))
    scene.sync("a-1", 1)

    described = scene.describe()

    assert (described.protocol, described.members[0].metadata) == ("sticky", b"s")


# Offset请求处理


def test_fetching_offsets_asks_for_some_or_for_all() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: OFFSET_FETCH."""
    scene = stable_pair()
    scene.commit({0: 10, 3: 30}, "a-1", 1)

    everything = scene.ask(lambda ticket: FetchOffsets(ticket=ticket, group_id=GROUP))

    assert scene.committed(3, 1) == [30, -1]
    offsets = everything.told(OffsetsFetched).offsets
    assert [(each.partition, each.offset) for each in offsets] == [(0, 10), (3, 30)]


def test_committing_offsets_keeps_metadata_and_epoch_with_them() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: OFFSET_COMMIT."""
    scene = stable_pair()
    offset = OffsetToCommit(
        topic=Topic("t"),
        partition=Partition(0),
        offset=Offset(10),
        leader_epoch=4,
        metadata="half of it",
    )

    scene.ask(
        lambda ticket: CommitOffsets(
            ticket=ticket,
            group_id=GROUP,
            member_id=MemberId("a-1"),
            generation=Generation(1),
            offsets=(offset,),
        )
    )

    asked = scene.ask(lambda ticket: FetchOffsets(ticket=ticket, group_id=GROUP))
    (fetched,) = asked.told(OffsetsFetched).offsets
    assert (fetched.offset, fetched.leader_epoch, fetched.metadata) == (10, 4, "half of it")


# Group相关处理


def test_describing_a_group_tells_of_every_member() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: DESCRIBE_GROUPS."""
    stable, completing = stable_pair().describe(), completing_pair().describe()

    assert [each.member_id for each in stable.members] == ["a-1", "b-1"]
    assert [each.assignment for each in completing.members] == [b"", b""]
    assert completing.protocol == ""


def test_listing_groups_tells_of_every_group_and_its_state() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: LIST_GROUPS."""
    scene = stable_pair()
    scene.commit({0: 1}, group="simple")

    assert listed(scene) == [("g", "consumer", "Stable"), ("simple", "", "Empty")]
    assert listed(scene, "empty") == [("simple", "", "Empty")]


def test_leaving_removes_the_member_and_moves_the_group() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: LEAVE_GROUP, 状态转换."""
    scene = stable_pair()

    one = scene.leave("a-1")
    assert scene.state() == "PreparingRebalance"
    both = scene.leave("b-1", "z-1")

    assert scene.state() == "Empty"
    errors = [each.error for asked in (one, both) for each in asked.told(LeaveAnswered).members]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


# 心跳请求处理


def test_the_coordinator_judges_by_heartbeats_who_is_alive() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: HEARTBEAT, 对于Server端."""
    scene = stable_pair()
    scene.advance(SESSION_MS - 1)
    scene.heartbeat("b-1", 1)

    scene.advance(1)

    assert [each.member_id for each in scene.describe().members] == ["b-1"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (stable_pair, ErrorCode.NONE),
        (completing_pair, ErrorCode.NONE),
        (Scene, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_the_client_senses_the_groups_state_by_heartbeats(
    make: Callable[[], Scene], error: ErrorCode
) -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: HEARTBEAT, 对于Client端."""
    assert make().heartbeat("a-1", 1).error is error


def test_the_client_senses_its_own_past_by_heartbeats() -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: HEARTBEAT, old generations."""
    assert stable_pair().heartbeat("a-1", 0).error is ErrorCode.ILLEGAL_GENERATION


# Group的状态机


@pytest.mark.parametrize("state", list(GroupState))
def test_a_state_has_the_previous_states_of_the_table(state: GroupState) -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: Group的状态机.

    A dead group here is gone: it is never declared dead again.
    """
    previous = {before for before, after in LEGAL.items() if state in after}

    assert previous == PREVIOUS[state] - {DEAD}


@pytest.mark.parametrize(
    ("before", "after"),
    [(one, other) for one in GroupState for other in GroupState if one not in PREVIOUS[other]],
)
def test_a_step_that_is_not_in_the_table_is_not_taken(
    before: GroupState, after: GroupState
) -> None:
    """004_1643d7a5372cb6cf, Kafka源码系列之八GroupCoordinator详解: 状态之间的有效转换关系."""
    with pytest.raises(AssertionError, match=f"{before} may not become {after}"):
        Roster(state=before).move(after, Millis(0))
