"""What a group lacks of an expectation, as clauses."""

import pytest

from kohort.assignors import COOPERATIVE_STICKY
from kohort.conditions.expectations import (
    CommitExpectation,
    GroupExpectation,
    find_missing,
    missing_commit,
    missing_rebalance,
    timeout_text,
)
from kohort.conditions.group_snapshot import (
    COOPERATIVE,
    STATES,
    GroupSnapshot,
    MemberSnapshot,
    PartitionProgress,
    absent_group,
    find_revoking,
    snapshot_from_json,
    snapshot_to_json,
)
from kohort.coordinator.groups.classic.states import GroupState
from kohort.events.schema import EventMember
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    TopicPartition,
)

BILLING = GroupId("billing")


def orders(partition: int) -> TopicPartition:
    return TopicPartition(Topic("orders"), Partition(partition))


def member(name: str, *partitions: int, instance: str | None = None) -> MemberSnapshot:
    return MemberSnapshot(
        party=EventMember(
            member_id=MemberId(f"{name}-id"),
            instance_id=None if instance is None else InstanceId(instance),
            client_id=name,
            client_host="/127.0.0.1",
        ),
        assignment=tuple(map(orders, partitions)),
    )


def progress(partition: int, end: int, committed: int | None, start: int = 0) -> PartitionProgress:
    return PartitionProgress(
        partition=orders(partition),
        start=Offset(start),
        end=Offset(end),
        committed=None if committed is None else Offset(committed),
    )


def group(
    *members: MemberSnapshot,
    state: str = "Stable",
    unsynced: tuple[str, ...] = (),
    revoking: tuple[str, ...] = (),
    joining: int = 0,
    partitions: tuple[PartitionProgress, ...] = (),
) -> GroupSnapshot:
    return GroupSnapshot(
        group_id=BILLING,
        state=state,
        state_age_ms=Millis(4_100),
        generation=Generation(3),
        protocol_type="consumer",
        protocol="range",
        members=members,
        unsynced=tuple(map(MemberId, unsynced)),
        revoking=tuple(map(MemberId, revoking)),
        joining=joining,
        partitions=partitions,
    )


TWO = (member("a", 0), member("b", 1))
BEHIND = (progress(0, 5, 2), progress(1, 4, None))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (group(*TWO), GroupExpectation()),
        (group(*TWO), GroupExpectation(members=2, stable=True, assigned=2)),
        (group(*TWO, unsynced=("a-id",)), GroupExpectation(state="Stable")),
        (group(state="Empty"), GroupExpectation(members=0, state="Empty", assigned=0)),
        (group(partitions=BEHIND), GroupExpectation(lag=7)),
        (
            group(partitions=(progress(0, 5, 5),)),
            GroupExpectation(lag=0, topics=(Topic("orders"),)),
        ),
        (absent_group(BILLING), GroupExpectation(state="Dead")),
    ],
)
def test_nothing_is_missing_if_all_expectations_hold(
    found: GroupSnapshot, expected: GroupExpectation
) -> None:
    assert find_missing(found, expected) == []


@pytest.mark.parametrize(
    ("found", "expected", "missing"),
    [
        (
            group(*TWO),
            GroupExpectation(members=3),
            "group billing has 2 members, 3 were expected",
        ),
        (
            group(*TWO),
            GroupExpectation(members=1),
            "group billing has 2 members, 1 was expected",
        ),
        (
            group(*TWO, state="PreparingRebalance"),
            GroupExpectation(stable=True),
            "state is PreparingRebalance since 4.1 s, Stable was expected",
        ),
        (
            group(*TWO),
            GroupExpectation(state="Empty"),
            "state is Stable since 4.1 s, Empty was expected",
        ),
        (
            group(*TWO, unsynced=("b-id",)),
            GroupExpectation(stable=True),
            "1 member has not received the assignment of this generation: b",
        ),
        (
            group(member("a", instance="rack-1"), TWO[1], unsynced=("a-id", "b-id")),
            GroupExpectation(stable=True),
            "2 members have not received the assignment of this generation: rack-1, b",
        ),
        (
            group(*TWO, revoking=("a-id",)),
            GroupExpectation(stable=True),
            "partitions must be revoked, then a rebalance follows: a",
        ),
        (
            group(*TWO, joining=1),
            GroupExpectation(stable=True),
            "1 member got a member id and did not join yet",
        ),
        (
            group(*TWO),
            GroupExpectation(assigned=4),
            "2 partitions are assigned, 4 were expected",
        ),
        (
            group(partitions=BEHIND),
            GroupExpectation(lag=0),
            "lag is 7, at most 0 was expected: orders-1 4, orders-0 3",
        ),
        (
            group(),
            GroupExpectation(lag=0),
            "lag is not known: no existing topic is subscribed to or has a committed offset",
        ),
        (
            group(partitions=BEHIND),
            GroupExpectation(lag=9, topics=(Topic("orders"), Topic("refunds"))),
            "topic refunds does not exist",
        ),
        (
            absent_group(BILLING),
            GroupExpectation(members=2, lag=0),
            "group billing does not exist",
        ),
    ],
)
def test_missing_expectation_is_a_clause_with_both_values(
    found: GroupSnapshot, expected: GroupExpectation, missing: str
) -> None:
    assert find_missing(found, expected) == [missing]


def test_all_missing_expectations_are_reported() -> None:
    found = group(*TWO, state="PreparingRebalance", partitions=BEHIND)

    missing = find_missing(found, GroupExpectation(members=3, stable=True, lag=0))

    assert len(missing) == 3


def test_long_lists_are_cut() -> None:
    partitions = tuple(progress(number, 1, 0) for number in range(12))

    (missing,) = find_missing(group(partitions=partitions), GroupExpectation(lag=0))

    assert missing.endswith("orders-9 1 and 2 more")


@pytest.mark.parametrize(
    ("each", "lag"),
    [
        (progress(0, 5, 2), 3),
        (progress(0, 5, None), 5),
        (progress(0, 5, None, start=4), 1),
        # Its records were deleted: they cannot be read any more.
        (progress(0, 5, 0, start=5), 0),
        (progress(0, 5, 9), 0),
    ],
)
def test_lag_counts_the_records_that_can_be_read_and_are_not_committed(
    each: PartitionProgress, lag: int
) -> None:
    assert each.lag == lag


def test_only_cooperative_members_that_lose_partitions_rejoin() -> None:
    a, b = MemberId("a"), MemberId("b")
    members = [(a, [orders(0), orders(1)], [orders(0)]), (b, [], [orders(2)])]

    assert find_revoking("cooperative-sticky", members) == (a,)
    assert find_revoking("range", members) == ()


def test_names_are_those_of_the_coordinator_and_of_the_assignor() -> None:
    assert set(GroupState) <= set(STATES)
    assert COOPERATIVE_STICKY.name == COOPERATIVE


def test_snapshot_survives_json() -> None:
    found = group(
        member("a", 0, 1, instance="rack-1"), unsynced=("a-id",), joining=2, partitions=BEHIND
    )

    assert snapshot_from_json(snapshot_to_json(found)) == found


def test_missing_rebalance_names_generation_and_state() -> None:
    assert missing_rebalance(group(state="PreparingRebalance"), Generation(3)) == [
        "no rebalance of group billing after generation 3 has completed",
        "state is PreparingRebalance since 4.1 s",
    ]


@pytest.mark.parametrize(
    ("expected", "missing"),
    [
        (CommitExpectation(), "group billing has not committed an offset since the call"),
        (
            CommitExpectation(topic=Topic("orders")),
            "group billing has not committed orders since the call",
        ),
        (
            CommitExpectation(topic=Topic("orders"), partition=Partition(0), offset=Offset(5)),
            "group billing has committed offset 3 of orders-0, at least 5 was expected",
        ),
        (
            CommitExpectation(topic=Topic("orders"), partition=Partition(1), offset=Offset(5)),
            "group billing has not committed orders-1, 5 was expected",
        ),
    ],
)
def test_missing_commit_names_partition_and_offsets(
    expected: CommitExpectation, missing: str
) -> None:
    assert missing_commit(BILLING, {orders(0): Offset(3)}, expected) == [missing]


def test_timeout_text_has_what_is_missing_and_the_last_events() -> None:
    text = timeout_text(BILLING, ["lag is 7", "state is Empty"], 2.5, ["first", "second"])

    assert text == (
        "not within 2.5 s: lag is 7; state is Empty\n"
        "last events of group billing:\n"
        "  first\n"
        "  second"
    )
    assert timeout_text(BILLING, ["lag is 7"], 1, []) == "not within 1 s: lag is 7"
