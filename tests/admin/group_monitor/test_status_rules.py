"""The status of groups and partitions, and its reasons."""

import pytest

from kohort.admin.group_monitor import PartitionStatus, Status
from kohort.admin.group_monitor.status_rules import (
    CRITICAL_REBALANCES,
    LONG_REBALANCE_MS,
    STALLED_MS,
    WARNING_REBALANCES,
    GroupFacts,
    group_status,
    is_rising,
    partition_status,
)
from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.types import Millis
from tests.admin.group_monitor.cluster_records import NOW, rebalance_ended, rebalance_of


def rebalances_of(count: int) -> list[ObservedRebalance]:
    return [rebalance_of(rebalance_ended(number, {}, ms=NOW - number)) for number in range(count)]


def facts(
    *,
    state: str = "Stable",
    since: int = NOW,
    rebalances: int = 0,
    partition_statuses: dict[PartitionStatus, int] | None = None,
    trend: tuple[int | None, ...] = (),
    committed: int | None = None,
) -> GroupFacts:
    return GroupFacts(
        state=state,
        state_since_ms=Millis(since),
        rebalances=rebalances_of(rebalances),
        partition_statuses=partition_statuses or {},
        lag=None,
        trend=trend,
        last_commit_ms=None if committed is None else Millis(committed),
    )


@pytest.mark.parametrize(
    ("group", "status", "reason"),
    [
        (facts(), Status.HEALTHY, ""),
        (facts(state="PreparingRebalance"), Status.HEALTHY, ""),
        (
            facts(state="PreparingRebalance", since=NOW - LONG_REBALANCE_MS),
            Status.CRITICAL,
            "rebalancing for 1 min",
        ),
        (
            facts(partition_statuses={PartitionStatus.STALLED: 1}),
            Status.CRITICAL,
            "1 partition stalled",
        ),
        (
            facts(partition_statuses={PartitionStatus.STALLED: 2}),
            Status.CRITICAL,
            "2 partitions stalled",
        ),
        (
            facts(rebalances=CRITICAL_REBALANCES),
            Status.CRITICAL,
            f"{CRITICAL_REBALANCES} rebalances in 10 min",
        ),
        (
            facts(rebalances=WARNING_REBALANCES),
            Status.WARNING,
            f"{WARNING_REBALANCES} rebalances in 10 min",
        ),
        (facts(rebalances=WARNING_REBALANCES - 1), Status.HEALTHY, ""),
        (
            facts(
                state="Empty", partition_statuses={PartitionStatus.STOPPED: 3}, committed=NOW - 1000
            ),
            Status.WARNING,
            "no members",
        ),
        (
            facts(
                state="Empty",
                partition_statuses={PartitionStatus.STOPPED: 3},
                committed=NOW - 90_000_000,
            ),
            Status.HEALTHY,
            "",
        ),
        (
            facts(partition_statuses={PartitionStatus.STOPPED: 1}, committed=NOW),
            Status.WARNING,
            "1 partition without an owner",
        ),
        (facts(trend=tuple(range(0, 900, 100))), Status.WARNING, "lag is rising"),
    ],
)
def test_a_status_has_a_reason(group: GroupFacts, status: Status, reason: str) -> None:
    found, reasons = group_status(group, NOW)

    assert found is status
    assert reasons == ((reason,) if reason else ())


@pytest.mark.parametrize(
    ("trend", "rises"),
    [
        ((), False),
        ((5,) * 20, False),
        (tuple(range(100, 1000, 100)), True),
        ((*range(100, 1000, 100), 50), False),
        ((None,) * 20, False),
    ],
)
def test_lag_is_rising_only_if_it_never_falls(
    trend: tuple[int | None, ...],
    rises: bool,  # noqa: FBT001
) -> None:
    assert is_rising(trend) is rises


@pytest.mark.parametrize(
    ("lag", "unchanged_ms", "has_owner", "status"),
    [
        (None, None, True, PartitionStatus.UNKNOWN),
        (0, None, True, PartitionStatus.OK),
        (0, None, False, PartitionStatus.OK),
        (5, None, False, PartitionStatus.STOPPED),
        (5, None, True, PartitionStatus.BEHIND),
        (5, STALLED_MS - 1, True, PartitionStatus.BEHIND),
        (5, STALLED_MS, True, PartitionStatus.STALLED),
    ],
)
def test_a_partition_is_stalled_only_with_an_owner_and_lag(
    lag: int | None,
    unchanged_ms: int | None,
    has_owner: bool,  # noqa: FBT001
    status: PartitionStatus,
) -> None:
    since = None if unchanged_ms is None else Millis(NOW - unchanged_ms)

    assert (
        partition_status(lag=lag, unchanged_since_ms=since, has_owner=has_owner, now_ms=NOW)
        is status
    )
