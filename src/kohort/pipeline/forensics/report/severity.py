"""The severity score of a group, used for sorting, and its status. Pure.

The score has no unit; twice the score does not mean twice the problem.
"""

from collections.abc import Iterable
from typing import Final

from kohort.pipeline.forensics.report.report_model import GroupStatus, GroupSummary, SeverityScore

SEVERITY_POINTS: Final = {"critical": 30, "warning": 10, "notice": 2}
"""Once for each kind of finding: ten evicted members are one problem, not ten."""

STATUS_POINTS: Final = {"stopped": 20, "stalled": 20, "rewound": 20, "warning": 10, "ok": 0}
"""For a group all of whose partitions have the status; otherwise in proportion."""

RATE_POINTS_MAX: Final = 20.0
FREQUENT_PER_HOUR: Final = 10
HOUR_MS: Final = 3_600_000

SEVERITY_HELP: Final = (
    "The number next to the status is a severity score used for sorting. It is the sum of: 30 "
    "points for each kind of critical finding, 10 for a warning, 2 for a notice; 1 point for "
    "each percent of partition time without owner; 1 point for each percent of time spent "
    "rebalancing; 1 point for each rebalance per hour (at most 20); and up to 20 points for the"
    " share of partitions whose lag status is stopped, stalled or rewound (10 for warning). A "
    "group is critical if it has a critical finding, and warning if it has a warning or more "
    "than 10 rebalances per hour. Critical groups are always listed first."
)


def ownerless_share(group: GroupSummary) -> float:
    """The share of partition-time without an owner, 0 to 1."""
    together_ms = group.known_ms * group.partitions
    return min(group.ownerless_ms / together_ms, 1.0) if together_ms else 0.0


def rebalancing_share(group: GroupSummary) -> float:
    """The share of its known time spent rebalancing, 0 to 1."""
    return min(group.rebalancing_ms / group.known_ms, 1.0) if group.known_ms else 0.0


def rebalances_per_hour(group: GroupSummary) -> float:
    """Over its known time, but at least an hour: a shorter time gives no useful rate."""
    return group.rebalances * HOUR_MS / max(group.known_ms, HOUR_MS)


def severity_of(group: GroupSummary) -> SeverityScore:
    kinds: dict[str, int] = {}
    for each in group.findings:
        points = SEVERITY_POINTS.get(each.severity, 0)
        kinds[each.finding] = max(points, kinds.get(each.finding, 0))
    partitions = sum(number for _, number in group.statuses)
    behind = sum(STATUS_POINTS.get(status, 0) * number for status, number in group.statuses)
    return SeverityScore(
        findings=float(sum(kinds.values())),
        ownerless=round(100 * ownerless_share(group), 1),
        rebalancing=round(100 * rebalancing_share(group), 1),
        rate=round(min(rebalances_per_hour(group), RATE_POINTS_MAX), 1),
        lag=round(behind / partitions, 1) if partitions else 0.0,
    )


def status_of(group: GroupSummary) -> GroupStatus:
    severities = {each.severity for each in group.findings}
    if "critical" in severities:
        return GroupStatus.CRITICAL
    # Frequent rebalances are a warning even if no finding explains them.
    is_frequent = rebalances_per_hour(group) > FREQUENT_PER_HOUR
    return GroupStatus.WARNING if "warning" in severities or is_frequent else GroupStatus.HEALTHY


def rank(groups: Iterable[GroupSummary]) -> list[GroupSummary]:
    """By status, then by severity score, the most severe first."""
    order = [GroupStatus.CRITICAL, GroupStatus.WARNING, GroupStatus.HEALTHY]
    return sorted(
        groups,
        key=lambda each: (
            order.index(status_of(each)),
            -severity_of(each).total,
            -each.ownerless_ms,
            each.group_id,
        ),
    )
