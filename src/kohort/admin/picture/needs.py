"""How soon a group wants somebody's eyes, and why, in words. Pure.

Few rules, each about something that is wrong at this moment: history is for forensics to judge.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kohort.admin.picture.values import MOVING, Need, Rebalance, Standing
from kohort.types import Millis, value

LONG_REBALANCE_MS: Final = 60_000
"""A member that needs longer to join than this stops everybody else's work for as long."""

STILL_MS: Final = 120_000
"""Programs commit every few seconds, batch ones within a minute or so."""

RECENT_MS: Final = 600_000
HOUR_MS: Final = 3_600_000

STORM: Final = 15
"""Rebalances within ten minutes: the group does little else."""

RESTLESS: Final = 6
"""More than a deploy of a small fleet."""

RISING: Final = 8
"""Looks in a row, two minutes of them, in which lag did not fall once."""


@value
class Facts:
    state: str
    state_since_ms: Millis | None
    rebalances: Sequence[Rebalance]
    standings: dict[Standing, int]
    lag: int | None
    trend: Sequence[int | None]
    last_commit_ms: Millis | None


def judge(facts: Facts, now_ms: Millis) -> tuple[Need, tuple[str, ...]]:
    """The need, and its reasons, the worst first."""
    recent = count_since(facts.rebalances, Millis(now_ms - RECENT_MS))
    now, soon = _urgent(facts, recent, now_ms), _notable(facts, recent, now_ms)
    need = Need.NOW if now else Need.SOON if soon else Need.NONE
    return need, (*now, *soon)


def _urgent(facts: Facts, recent: int, now_ms: Millis) -> list[str]:
    reasons = []
    since = facts.state_since_ms
    if facts.state in MOVING and since is not None and now_ms - since >= LONG_REBALANCE_MS:
        reasons.append(f"rebalancing for {(now_ms - since) // 60_000} min")
    stalled = facts.standings.get(Standing.STALLED, 0)
    if stalled:
        does = "partition does" if stalled == 1 else "partitions do"
        reasons.append(f"{stalled:,} {does} not move")
    if recent >= STORM:
        reasons.append(f"{recent} rebalances in 10 min")
    return reasons


def _notable(facts: Facts, recent: int, now_ms: Millis) -> list[str]:
    reasons = []
    if RESTLESS <= recent < STORM:
        reasons.append(f"{recent} rebalances in 10 min")
    committed = facts.last_commit_ms
    is_fresh = committed is not None and now_ms - committed <= HOUR_MS
    stopped = facts.standings.get(Standing.STOPPED, 0)
    if stopped and is_fresh:
        is_one = stopped == 1
        reasons.append(
            "nobody reads it any more"
            if facts.state == "Empty"
            else f"nobody has {stopped:,} {'partition' if is_one else 'partitions'}"
        )
    if is_rising(facts.trend):
        reasons.append("lag rises")
    return reasons


def is_rising(trend: Sequence[int | None]) -> bool:
    last = [each for each in trend[-RISING:] if each is not None]
    if len(last) < RISING:
        return False
    never_fell = all(one <= other for one, other in pairwise(last))
    return never_fell and last[-1] > last[0] * 1.1 + 10


def standing_of(
    *,
    lag: int | None,
    still_since_ms: Millis | None,
    has_owner: bool,
    now_ms: Millis,
) -> Standing:
    """`still_since_ms` says since when there is something to read and the offset has not moved."""
    if lag is None:
        return Standing.UNKNOWN
    if lag == 0:
        return Standing.OK
    if not has_owner:
        return Standing.STOPPED
    is_still = still_since_ms is not None and now_ms - still_since_ms >= STILL_MS
    return Standing.STALLED if is_still else Standing.BEHIND


def moment_of(rebalance: Rebalance) -> Millis:
    """When it was, as well as that is known."""
    for moment in (rebalance.ended_ms, rebalance.started_ms):
        if moment is not None:
            return moment
    return Millis(0)


def count_since(rebalances: Sequence[Rebalance], since_ms: Millis) -> int:
    return sum(moment_of(each) >= since_ms for each in rebalances)
