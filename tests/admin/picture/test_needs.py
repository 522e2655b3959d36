"""Which groups want somebody's eyes, and why."""

import pytest

from kohort.admin.picture import Need, Standing
from kohort.admin.picture.events import read_ended
from kohort.admin.picture.needs import (
    LONG_REBALANCE_MS,
    RESTLESS,
    STILL_MS,
    STORM,
    Facts,
    is_rising,
    judge,
    standing_of,
)
from kohort.admin.picture.values import Rebalance
from kohort.types import Millis
from tests.admin.picture.folding import NOW, ended


def some(count: int) -> list[Rebalance]:
    return [read_ended(ended(number, {}, ms=NOW - number)) for number in range(count)]


def facts(
    *,
    state: str = "Stable",
    since: int = NOW,
    rebalances: int = 0,
    standings: dict[Standing, int] | None = None,
    trend: tuple[int | None, ...] = (),
    committed: int | None = None,
) -> Facts:
    return Facts(
        state=state,
        state_since_ms=Millis(since),
        rebalances=some(rebalances),
        standings=standings or {},
        lag=None,
        trend=trend,
        last_commit_ms=None if committed is None else Millis(committed),
    )


@pytest.mark.parametrize(
    ("told", "need", "reason"),
    [
        (facts(), Need.NONE, ""),
        (facts(state="PreparingRebalance"), Need.NONE, ""),
        (
            facts(state="PreparingRebalance", since=NOW - LONG_REBALANCE_MS),
            Need.NOW,
            "rebalancing for 1 min",
        ),
        (facts(standings={Standing.STALLED: 1}), Need.NOW, "1 partition does not move"),
        (facts(standings={Standing.STALLED: 2}), Need.NOW, "2 partitions do not move"),
        (facts(rebalances=STORM), Need.NOW, f"{STORM} rebalances in 10 min"),
        (facts(rebalances=RESTLESS), Need.SOON, f"{RESTLESS} rebalances in 10 min"),
        (facts(rebalances=RESTLESS - 1), Need.NONE, ""),
        (
            facts(state="Empty", standings={Standing.STOPPED: 3}, committed=NOW - 1000),
            Need.SOON,
            "nobody reads it any more",
        ),
        (
            facts(state="Empty", standings={Standing.STOPPED: 3}, committed=NOW - 90_000_000),
            Need.NONE,
            "",
        ),
        (
            facts(standings={Standing.STOPPED: 1}, committed=NOW),
            Need.SOON,
            "nobody has 1 partition",
        ),
        (facts(trend=tuple(range(0, 900, 100))), Need.SOON, "lag rises"),
    ],
)
def test_a_need_has_its_reason(told: Facts, need: Need, reason: str) -> None:
    found, reasons = judge(told, NOW)

    assert found is need
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
def test_lag_rises_only_if_it_never_fell(
    trend: tuple[int | None, ...],
    rises: bool,  # noqa: FBT001
) -> None:
    assert is_rising(trend) is rises


@pytest.mark.parametrize(
    ("lag", "still_ms", "has_owner", "standing"),
    [
        (None, None, True, Standing.UNKNOWN),
        (0, None, True, Standing.OK),
        (0, None, False, Standing.OK),
        (5, None, False, Standing.STOPPED),
        (5, None, True, Standing.BEHIND),
        (5, STILL_MS - 1, True, Standing.BEHIND),
        (5, STILL_MS, True, Standing.STALLED),
    ],
)
def test_a_partition_stands_still_only_with_an_owner_and_something_to_read(
    lag: int | None,
    still_ms: int | None,
    has_owner: bool,  # noqa: FBT001
    standing: Standing,
) -> None:
    since = None if still_ms is None else Millis(NOW - still_ms)

    assert standing_of(lag=lag, still_since_ms=since, has_owner=has_owner, now_ms=NOW) is standing
