"""How much a group hurts: a sum of five parts that can each be explained, and three words for it.

The figure is for ranking. It has no unit, and a group with twice as much is not twice as ill.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from kohort.pipeline.forensics.report.material import Summary
from kohort.types import value

SEVERITY_POINTS: Final = {"critical": 30, "warning": 10, "notice": 2}
"""For each kind of finding, once: ten evicted members are one trouble, not ten."""

STATUS_POINTS: Final = {"stopped": 20, "stalled": 20, "rewound": 20, "warning": 10, "ok": 0}
"""For a group all of whose partitions are so; the share of them that are counts."""

RATE_POINTS_MAX: Final = 20.0
RESTLESS_PER_HOUR: Final = 10
HOUR_MS: Final = 3_600_000

MEASURE: Final = (
    "The figure beside a group's need is its pain, for ranking. It adds up, for each kind of "
    "finding, 30 points if it is critical, 10 if it is a warning and 2 if it is a notice; one "
    "point for each percent of partition-time without an owner; one for each percent of time spent "
    "rebalancing; one for each rebalance an hour, up to 20; and up to 20 for the share of "
    "partitions whose lag is stopped, stalled or rewound, half of that where it only never falls. "
    "Whatever the sum, groups with something critical come first, then those with a warning or "
    "more than ten rebalances an hour."
)


class Need(StrEnum):
    NOW = "now"
    """Something is critical."""
    SOON = "soon"
    """Something deserves a look."""
    NONE = "none"


@value
class Pain:
    findings: float
    ownerless: float
    rebalancing: float
    rate: float
    lag: float

    @property
    def total(self) -> float:
        return round(self.findings + self.ownerless + self.rebalancing + self.rate + self.lag, 1)


def ownerless_share(group: Summary) -> float:
    """Of all the time its partitions had together, 0 to 1."""
    together_ms = group.known_ms * group.partitions
    return min(group.ownerless_ms / together_ms, 1.0) if together_ms else 0.0


def rebalancing_share(group: Summary) -> float:
    """Of the time that it was there, 0 to 1."""
    return min(group.rebalancing_ms / group.known_ms, 1.0) if group.known_ms else 0.0


def rebalances_per_hour(group: Summary) -> float:
    """While it was there; one that came for a minute is not judged as if it came all day."""
    return group.rebalances * HOUR_MS / max(group.known_ms, HOUR_MS)


def pain(group: Summary) -> Pain:
    kinds: dict[str, int] = {}
    for each in group.findings:
        points = SEVERITY_POINTS.get(each.severity, 0)
        kinds[each.finding] = max(points, kinds.get(each.finding, 0))
    partitions = sum(number for _, number in group.statuses)
    behind = sum(STATUS_POINTS.get(status, 0) * number for status, number in group.statuses)
    return Pain(
        findings=float(sum(kinds.values())),
        ownerless=round(100 * ownerless_share(group), 1),
        rebalancing=round(100 * rebalancing_share(group), 1),
        rate=round(min(rebalances_per_hour(group), RATE_POINTS_MAX), 1),
        lag=round(behind / partitions, 1) if partitions else 0.0,
    )


def need(group: Summary) -> Need:
    severities = {each.severity for each in group.findings}
    if "critical" in severities:
        return Need.NOW
    # Many rebalances are no normal state, even if no pattern explains them.
    is_restless = rebalances_per_hour(group) > RESTLESS_PER_HOUR
    return Need.SOON if "warning" in severities or is_restless else Need.NONE


def rank(groups: Iterable[Summary]) -> list[Summary]:
    """The one that hurts most first; those in need always before those that are not."""
    order = [Need.NOW, Need.SOON, Need.NONE]
    return sorted(
        groups,
        key=lambda each: (
            order.index(need(each)),
            -pain(each).total,
            -each.ownerless_ms,
            each.group_id,
        ),
    )
