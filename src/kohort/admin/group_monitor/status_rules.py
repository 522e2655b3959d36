"""The rules for the status of a group and of its partitions, and the reasons as text. Pure.

Each rule is about something that is wrong now. Forensics analyses history.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kohort.admin.group_monitor.views import REBALANCING, ObservedRebalance, PartitionStatus, Status
from kohort.text.numbers import count
from kohort.types import Millis, value

LONG_REBALANCE_MS: Final = 60_000
"""While one member takes this long to join, the whole group stops consuming."""

STALLED_MS: Final = 120_000
"""Consumers commit every few seconds, batch consumers within about a minute."""

RECENT_MS: Final = 600_000
HOUR_MS: Final = 3_600_000

CRITICAL_REBALANCES: Final = 15
"""Within ten minutes. The group does little else."""

WARNING_REBALANCES: Final = 6
"""Within ten minutes. More than the rolling restart of a small group."""

RISING_SAMPLES: Final = 8
"""Consecutive lag samples, two minutes of them, in which lag never falls."""


@value
class GroupFacts:
    state: str
    state_since_ms: Millis | None
    rebalances: Sequence[ObservedRebalance]
    partition_statuses: dict[PartitionStatus, int]
    lag: int | None
    trend: Sequence[int | None]
    last_commit_ms: Millis | None


def group_status(facts: GroupFacts, now_ms: Millis) -> tuple[Status, tuple[str, ...]]:
    """The status, and its reasons, the worst first."""
    recent = count_since(facts.rebalances, Millis(now_ms - RECENT_MS))
    critical = _critical_reasons(facts, recent, now_ms)
    warnings = _warning_reasons(facts, recent, now_ms)
    status = Status.CRITICAL if critical else Status.WARNING if warnings else Status.HEALTHY
    return status, (*critical, *warnings)


def _critical_reasons(facts: GroupFacts, recent: int, now_ms: Millis) -> list[str]:
    reasons = []
    since = facts.state_since_ms
    if facts.state in REBALANCING and since is not None and now_ms - since >= LONG_REBALANCE_MS:
        reasons.append(f"rebalancing for {(now_ms - since) // 60_000} min")
    stalled = facts.partition_statuses.get(PartitionStatus.STALLED, 0)
    if stalled:
        reasons.append(f"{count(stalled, 'partition')} stalled")
    if recent >= CRITICAL_REBALANCES:
        reasons.append(f"{recent} rebalances in 10 min")
    return reasons


def _warning_reasons(facts: GroupFacts, recent: int, now_ms: Millis) -> list[str]:
    reasons = []
    if WARNING_REBALANCES <= recent < CRITICAL_REBALANCES:
        reasons.append(f"{recent} rebalances in 10 min")
    committed = facts.last_commit_ms
    is_fresh = committed is not None and now_ms - committed <= HOUR_MS
    stopped = facts.partition_statuses.get(PartitionStatus.STOPPED, 0)
    if stopped and is_fresh:
        reasons.append(
            "no members"
            if facts.state == "Empty"
            else f"{count(stopped, 'partition')} without an owner"
        )
    if is_rising(facts.trend):
        reasons.append("lag is rising")
    return reasons


def is_rising(trend: Sequence[int | None]) -> bool:
    last = [each for each in trend[-RISING_SAMPLES:] if each is not None]
    if len(last) < RISING_SAMPLES:
        return False
    never_fell = all(one <= other for one, other in pairwise(last))
    return never_fell and last[-1] > last[0] * 1.1 + 10


def partition_status(
    *,
    lag: int | None,
    unchanged_since_ms: Millis | None,
    has_owner: bool,
    now_ms: Millis,
) -> PartitionStatus:
    """`unchanged_since_ms`: since when the partition has lag and the same committed offset."""
    if lag is None:
        return PartitionStatus.UNKNOWN
    if lag == 0:
        return PartitionStatus.OK
    if not has_owner:
        return PartitionStatus.STOPPED
    since = unchanged_since_ms
    is_stalled = since is not None and now_ms - since >= STALLED_MS
    return PartitionStatus.STALLED if is_stalled else PartitionStatus.BEHIND


def timestamp_of(rebalance: ObservedRebalance) -> Millis:
    """Its end, else its start."""
    for timestamp in (rebalance.ended_ms, rebalance.started_ms):
        if timestamp is not None:
            return timestamp
    return Millis(0)


def count_since(rebalances: Sequence[ObservedRebalance], since_ms: Millis) -> int:
    return sum(timestamp_of(each) >= since_ms for each in rebalances)
