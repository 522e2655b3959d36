"""Sample rows for reports: a caller sets what matters, the rest is an ordinary group.

Times are milliseconds; the sample time range starts at START_MS and has four hours.
"""

from typing import Any

from kohort.pipeline.forensics.report.builder import build_report
from kohort.pipeline.forensics.report.report_model import (
    Bin,
    ClientIdentity,
    DetailRows,
    FindingKind,
    FindingRow,
    GroupSummary,
    Initiator,
    LaggingPartition,
    LagStep,
    MembershipPeriod,
    OwnershipPeriod,
    RebalanceRow,
    Report,
    ReportOverview,
)
from kohort.pipeline.forensics.report.severity import rank

START_MS = 1_767_600_000_000
HOUR_MS = 3_600_000


def identity(
    name: str, membership: int = 1, host: str = "/10.0.0.1", instance: str | None = None
) -> ClientIdentity:
    return ClientIdentity(
        member_id=f"{name}-{membership}", instance_id=instance, client_id=name, client_host=host
    )


def group(name: str = "billing", **changes: Any) -> GroupSummary:
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
    return GroupSummary(**ordinary | changes)


def unstable_group(name: str = "billing", rebalances: int = 37, **changes: Any) -> GroupSummary:
    """A group whose rebalances worker-7 starts."""
    busy: dict[str, Any] = {
        "rebalances": rebalances,
        "exact": rebalances,
        "rebalancing_ms": HOUR_MS // 10,
        "ownerless_ms": HOUR_MS,
        "moved": 96,
        "moved_needlessly": 40,
        "replayed": 1204,
        "triggers": (("session-expired", rebalances - 1), ("member-joined", 1)),
        "initiators": (
            Initiator(
                identity=identity("worker-7"),
                trigger="session-expired",
                rebalances=rebalances - 1,
                ownerless_ms=HOUR_MS,
            ),
            Initiator(
                identity=identity("worker-1"), trigger="member-joined", rebalances=1, ownerless_ms=0
            ),
        ),
        "initiators_total": 2,
        "findings": (FindingKind(finding="rebalance-storm", severity="critical"),),
        "bins": (Bin(number=3, rebalances=rebalances, ownerless_ms=HOUR_MS),),
    }
    return group(name, **busy | changes)


def overview(*groups: GroupSummary, **changes: Any) -> ReportOverview:
    whole: dict[str, Any] = {
        "since_ms": START_MS,
        "until_ms": START_MS + 4 * HOUR_MS,
        "bin_ms": 300_000,
        "groups": len(groups),
        "commits": 1000,
        "events": 100,
        "undecodable": 0,
        "summaries": groups,
    }
    return ReportOverview(**whole | changes)


NOTHING = ReportOverview(
    since_ms=None,
    until_ms=None,
    bin_ms=1,
    groups=0,
    commits=0,
    events=0,
    undecodable=0,
    summaries=(),
)


def rebalance(at_s: float = 60, **changes: Any) -> RebalanceRow:
    started_ms = START_MS + round(at_s * 1000)
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
        "initiator": identity("worker-7"),
        "client_reason": None,
        "confidence": 1.0,
        "is_exact": True,
        "is_cooperative": False,
        "members_before": 3,
        "members_after": 2,
        "joined": (),
        "joined_total": 0,
        "departed": (identity("worker-7"),),
        "departed_total": 1,
        "slowest": identity("worker-1"),
        "slowest_join_ms": 2900,
        "moved": 4,
        "moved_needlessly": 1,
        "ownerless_ms": 36_000,
        "replayed": 5,
    }
    return RebalanceRow(**ordinary | changes)


def membership(
    name: str, from_s: float, to_s: float | None = None, number: int = 1
) -> tuple[ClientIdentity, MembershipPeriod]:
    client = identity(name, number)
    return client, MembershipPeriod(
        member_id=client.member_id or "",
        from_generation=1,
        to_generation=2,
        from_ms=START_MS + round(from_s * 1000),
        to_ms=None if to_s is None else START_MS + round(to_s * 1000),
        ending=None if to_s is None else "session-expired",
        is_exact=True,
    )


def owned(member: str, from_s: float, to_s: float | None, *numbers: int) -> OwnershipPeriod:
    return OwnershipPeriod(
        member_id=member,
        client_id=member.rpartition("-")[0],
        instance_id=None,
        from_ms=START_MS + round(from_s * 1000),
        to_ms=None if to_s is None else START_MS + round(to_s * 1000),
        gap_before_ms=3000 if from_s else None,
        partitions=tuple(("orders", number) for number in numbers),
    )


def finding(**changes: Any) -> FindingRow:
    ordinary: dict[str, Any] = {
        "finding": "rebalance-storm",
        "severity": "critical",
        "subject": "worker-7 at /10.0.0.1",
        "from_ms": START_MS,
        "to_ms": START_MS + HOUR_MS,
        "count": 36,
        "what": "36 rebalances within 1 h; worker-7 at /10.0.0.1 started most of them.",
        "advice": "Look at it first. Stop it.",
        "setting": "session.timeout.ms=45000",
        "would_have_saved_ms": HOUR_MS,
        "evidence": "{}",
    }
    return FindingRow(**ordinary | changes)


def detail(name: str = "billing", **changes: Any) -> DetailRows:
    """In the order of the tables: the latest first."""
    whole: dict[str, Any] = {
        "group_id": name,
        "rebalances": (rebalance(120, generation_before=2, generation=3), rebalance(60)),
        "memberships": (
            membership("worker-7", 90, number=2),
            membership("worker-7", 0, 63),
            membership("worker-1", 0),
        ),
        "memberships_total": 3,
        "ownership": (owned("worker-7-2", 123, None, 0, 1), owned("worker-1-1", 0, None, 2)),
        "ownership_total": 2,
        "partitions_total": 3,
        "lag": (
            LagStep(number=0, change=10, seconds=1.5),
            LagStep(number=4, change=90, seconds=None),
            LagStep(number=5, change=-60, seconds=0.5),
        ),
        "lag_step_ms": 60_000,
        "lagging_partitions": (
            LaggingPartition(
                topic="orders",
                partition=2,
                status="stopped",
                since_ms=START_MS,
                lag_records=40,
                owner="worker-1-1",
                reason="no commit for 1 h 12 min, with 87,491 records to read",
            ),
        ),
        "findings": (finding(),),
        "findings_total": 1,
    }
    return DetailRows(**whole | changes)


def report(*groups: GroupSummary, details: tuple[DetailRows, ...] = (), **changes: Any) -> Report:
    return build_report(overview(*groups, **changes), rank(groups), details)
