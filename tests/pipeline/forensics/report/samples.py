"""Small material for reports: say what matters, the rest is an ordinary group.

Times are milliseconds; the sample day begins at DAWN_MS and has four hours.
"""

from typing import Any

from kohort.pipeline.forensics.report.material import (
    Bin,
    Detail,
    Finding,
    Found,
    Laggard,
    LagStep,
    Life,
    Overview,
    Party,
    Rebalance,
    Starter,
    Stretch,
    Summary,
)
from kohort.pipeline.forensics.report.model import Report
from kohort.pipeline.forensics.report.pain import rank
from kohort.pipeline.forensics.report.telling import tell

DAWN_MS = 1_767_600_000_000
HOUR_MS = 3_600_000


def party(name: str, life: int = 1, host: str = "/10.0.0.1", instance: str | None = None) -> Party:
    return Party(member_id=f"{name}-{life}", instance_id=instance, client_id=name, client_host=host)


def group(name: str = "billing", **changes: Any) -> Summary:
    ordinary: dict[str, Any] = {
        "group_id": name,
        "state": "formed",
        "protocol": "range",
        "members": 3,
        "partitions": 12,
        "known_ms": 4 * HOUR_MS,
        "lag_records": 7,
        "statuses": (("ok", 12),),
    }
    return Summary(**ordinary | changes)


def restless(name: str = "billing", rebalances: int = 37, **changes: Any) -> Summary:
    """One that somebody called worker-7 keeps in motion."""
    busy: dict[str, Any] = {
        "rebalances": rebalances,
        "exact": rebalances,
        "rebalancing_ms": HOUR_MS // 10,
        "ownerless_ms": HOUR_MS,
        "moved": 96,
        "moved_needlessly": 40,
        "replayed": 1204,
        "triggers": (("session-expired", rebalances - 1), ("member-joined", 1)),
        "starters": (
            Starter(
                party=party("worker-7"),
                trigger="session-expired",
                rebalances=rebalances - 1,
                ownerless_ms=HOUR_MS,
            ),
            Starter(party=party("worker-1"), trigger="member-joined", rebalances=1, ownerless_ms=0),
        ),
        "starters_total": 2,
        "findings": (Found(finding="rebalance-storm", severity="critical"),),
        "bins": (Bin(number=3, rebalances=rebalances, ownerless_ms=HOUR_MS),),
    }
    return group(name, **busy | changes)


def overview(*groups: Summary, **changes: Any) -> Overview:
    whole: dict[str, Any] = {
        "since_ms": DAWN_MS,
        "until_ms": DAWN_MS + 4 * HOUR_MS,
        "bin_ms": 300_000,
        "groups": len(groups),
        "commits": 1000,
        "events": 100,
        "undecodable": 0,
        "summaries": groups,
    }
    return Overview(**whole | changes)


NOTHING = Overview(
    since_ms=None,
    until_ms=None,
    bin_ms=1,
    groups=0,
    commits=0,
    events=0,
    undecodable=0,
    summaries=(),
)


def rebalance(at_s: float = 60, **changes: Any) -> Rebalance:
    started_ms = DAWN_MS + round(at_s * 1000)
    ordinary: dict[str, Any] = {
        "generation_before": 1,
        "generation": 2,
        "started_ms": started_ms,
        "ended_ms": started_ms + 3000,
        "duration_ms": 3000,
        "join_ms": 2900,
        "sync_ms": 100,
        "ending": "stable",
        "trigger": "session-expired",
        "culprit": party("worker-7"),
        "client_reason": None,
        "confidence": 1.0,
        "is_exact": True,
        "is_cooperative": False,
        "members_before": 3,
        "members_after": 2,
        "joined": (),
        "joined_total": 0,
        "departed": (party("worker-7"),),
        "departed_total": 1,
        "slowest": party("worker-1"),
        "slowest_join_ms": 2900,
        "moved": 4,
        "moved_needlessly": 1,
        "ownerless_ms": 36_000,
        "replayed": 5,
    }
    return Rebalance(**ordinary | changes)


def life(name: str, from_s: float, to_s: float | None = None, number: int = 1) -> Life:
    return Life(
        party=party(name, number),
        from_generation=1,
        to_generation=2,
        from_ms=DAWN_MS + round(from_s * 1000),
        to_ms=None if to_s is None else DAWN_MS + round(to_s * 1000),
        ending=None if to_s is None else "session-expired",
        is_exact=True,
    )


def stretch(member: str, from_s: float, to_s: float | None, *numbers: int) -> Stretch:
    return Stretch(
        member_id=member,
        client_id=member.rpartition("-")[0],
        instance_id=None,
        from_ms=DAWN_MS + round(from_s * 1000),
        to_ms=None if to_s is None else DAWN_MS + round(to_s * 1000),
        gap_before_ms=3000 if from_s else None,
        places=tuple(("orders", number) for number in numbers),
    )


def finding(**changes: Any) -> Finding:
    ordinary: dict[str, Any] = {
        "finding": "rebalance-storm",
        "severity": "critical",
        "subject": "worker-7 at /10.0.0.1",
        "from_ms": DAWN_MS,
        "to_ms": DAWN_MS + HOUR_MS,
        "count": 36,
        "what": "36 rebalances within 1 h; worker-7 at /10.0.0.1 began the most.",
        "advice": "Look at it first. Stop it.",
        "setting": "session.timeout.ms=45000",
        "would_have_saved_ms": HOUR_MS,
        "evidence": "{}",
    }
    return Finding(**ordinary | changes)


def detail(name: str = "billing", **changes: Any) -> Detail:
    """As the tables give it: the latest first."""
    whole: dict[str, Any] = {
        "group_id": name,
        "rebalances": (rebalance(120, generation_before=2, generation=3), rebalance(60)),
        "lives": (life("worker-7", 90, number=2), life("worker-7", 0, 63), life("worker-1", 0)),
        "lives_total": 3,
        "stretches": (stretch("worker-7-2", 123, None, 0, 1), stretch("worker-1-1", 0, None, 2)),
        "stretches_total": 2,
        "places_total": 3,
        "lag": (
            LagStep(number=0, change=10, seconds=1.5),
            LagStep(number=4, change=90, seconds=None),
            LagStep(number=5, change=-60, seconds=0.5),
        ),
        "lag_step_ms": 60_000,
        "laggards": (
            Laggard(
                topic="orders",
                partition=2,
                status="stopped",
                since_ms=DAWN_MS,
                lag_records=40,
                owner="worker-1-1",
                reason="no commit for 1 h 12 min, with 87,491 records to read",
            ),
        ),
        "findings": (finding(),),
        "findings_total": 1,
    }
    return Detail(**whole | changes)


def report(*groups: Summary, details: tuple[Detail, ...] = (), **changes: Any) -> Report:
    return tell(overview(*groups, **changes), rank(groups), details)
