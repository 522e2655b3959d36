"""Build a report from rows of the tables: all groups ranked, the worst of them in detail. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from kohort.pipeline.forensics.report import sentences
from kohort.pipeline.forensics.report.report_model import (
    ClientMemberships,
    DetailRows,
    GroupDetails,
    GroupRow,
    GroupSummary,
    LagPoint,
    MembershipPeriod,
    Report,
    ReportOverview,
)
from kohort.pipeline.forensics.report.severity import (
    SEVERITY_HELP,
    ownerless_share,
    rebalances_per_hour,
    rebalancing_share,
    severity_of,
    status_of,
)
from kohort.text.numbers import count

_STATUSES: Final = ("stopped", "stalled", "rewound", "warning", "ok")
"""The lag statuses of a partition, the worst first."""

_SEVERITIES: Final = ("critical", "warning", "notice")


def build_report(
    overview: ReportOverview, ranked: Sequence[GroupSummary], details: Sequence[DetailRows]
) -> Report:
    """`ranked` has the overview's groups, the worst first; `details` has some of them."""
    by_name = {each.group_id: each for each in ranked}
    detailed = {each.group_id for each in details}
    span_ms = _span(overview)
    total = sum(each.rebalances for each in ranked)
    return Report(
        headline=sentences.headline(ranked, overview.groups),
        worst=sentences.worst(ranked, span_ms),
        since_ms=overview.since_ms,
        until_ms=overview.until_ms,
        bin_ms=overview.bin_ms,
        knowledge=sentences.knowledge(overview),
        is_exact=sum(each.exact for each in ranked) == total,
        severity_help=SEVERITY_HELP,
        groups_total=overview.groups,
        commits=overview.commits,
        events=overview.events,
        undecodable=overview.undecodable,
        omitted=_omitted(overview, detailed),
        groups=tuple(
            _group(each, span_ms, has_details=each.group_id in detailed) for each in ranked
        ),
        details=tuple(_group_details(each, by_name[each.group_id], overview) for each in details),
    )


def _span(overview: ReportOverview) -> int:
    if overview.since_ms is None or overview.until_ms is None:
        return 0
    return overview.until_ms - overview.since_ms


def _omitted(overview: ReportOverview, detailed: set[str]) -> tuple[str, ...]:
    listed = len(overview.summaries)
    parts = []
    if listed < overview.groups:
        parts.append(
            f"{count(overview.groups - listed, 'group')} with no more severe findings than those "
            "listed are counted, but not listed."
        )
    if len(detailed) < listed:
        parts.append(
            f"Details are shown for the {count(len(detailed), 'most severe group')}. For another "
            "group, create a report with --group."
        )
    shown = [each for each in overview.summaries if each.statuses]
    if shown and all(each.lag_records is None for each in shown):
        parts.append(
            "The end offsets of the logs are unknown, so lag is unknown, and so is whether a group "
            "that commits nothing has records to read."
        )
    if overview.undecodable:
        parts.append(
            f"{count(overview.undecodable, 'record')} could not be decoded; "
            "the table silver/undecodable has them, with the reasons."
        )
    return tuple(parts)


def _group(group: GroupSummary, span_ms: int, *, has_details: bool) -> GroupRow:
    initiator = sentences.main_initiator(group)
    statuses = {status for status, number in group.statuses if number}
    if group.lag_records is None:
        # Without known log ends, ok only means that nothing is known.
        statuses.discard("ok")
    severity = {each.finding: each.severity for each in reversed(group.findings)}
    for each in group.findings:
        if _severity_order(each.severity) < _severity_order(severity[each.finding]):
            severity[each.finding] = each.severity
    return GroupRow(
        group_id=group.group_id,
        status=status_of(group),
        severity=severity_of(group),
        sentence=sentences.in_short(group, span_ms),
        state=group.state,
        protocol=group.protocol,
        members=group.members,
        partitions=group.partitions,
        rebalances=group.rebalances,
        rebalances_per_hour=round(rebalances_per_hour(group), 2),
        rebalancing_share=round(rebalancing_share(group), 8),
        ownerless_ms=group.ownerless_ms,
        ownerless_share=round(ownerless_share(group), 8),
        initiator=initiator.identity.who if initiator else None,
        findings=tuple(sorted(severity, key=lambda name: (_severity_order(severity[name]), name))),
        lag_records=group.lag_records,
        lag_status=next((each for each in _STATUSES if each in statuses), None),
        exact=group.exact,
        confidence=group.confidence,
        bins=group.bins,
        has_details=has_details,
    )


def _severity_order(severity: str) -> int:
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)


def _group_details(
    detail: DetailRows, group: GroupSummary, overview: ReportOverview
) -> GroupDetails:
    since_ms = overview.since_ms or 0
    shown_from_ms = _shown_from(detail, group, since_ms)
    return GroupDetails(
        group_id=group.group_id,
        about=sentences.about(group),
        answers=sentences.answers(group, detail.findings, _span(overview)),
        knowledge=sentences.known(group),
        findings=detail.findings,
        shown_from_ms=shown_from_ms,
        omitted=_cut(detail, group),
        rebalances=tuple(reversed(detail.rebalances)),
        clients=_clients(detail),
        partitions=tuple(sorted({place for each in detail.ownership for place in each.partitions})),
        ownership=detail.ownership,
        empty_periods=detail.empty_periods,
        lag=_lag(detail, since_ms),
        lagging_partitions=detail.lagging_partitions,
    )


def _shown_from(detail: DetailRows, group: GroupSummary, since_ms: int) -> int:
    """The time from which every list is complete."""
    oldest = [since_ms]
    if len(detail.rebalances) < group.rebalances:
        last = detail.rebalances[-1]
        oldest.append(last.started_ms or last.ended_ms or since_ms)
    if len(detail.ownership) < detail.ownership_total:
        oldest.append(detail.ownership[-1].from_ms)
    return max(oldest)


def _cut(detail: DetailRows, group: GroupSummary) -> tuple[str, ...]:
    kinds: tuple[tuple[int, int, str], ...] = (
        (len(detail.rebalances), group.rebalances, "rebalances, the latest"),
        (len(detail.memberships), detail.memberships_total, "memberships, the latest"),
        (len(detail.findings), detail.findings_total, "findings, the most severe"),
        (
            len({place for each in detail.ownership for place in each.partitions}),
            detail.partitions_total,
            "partitions, those without an owner for longest",
        ),
    )
    return tuple(
        f"{shown:,} of {total:,} {what}, are shown."
        for shown, total, what in kinds
        if shown < total
    )


def _clients(detail: DetailRows) -> tuple[ClientMemberships, ...]:
    """All clients; those that started the most rebalances first, then by their first membership."""
    rebalances_started: dict[str, int] = defaultdict(int)
    for each in detail.rebalances:
        if each.initiator:
            rebalances_started[each.initiator.who] += 1
    memberships: dict[str, list[MembershipPeriod]] = defaultdict(list)
    for identity, membership in reversed(detail.memberships):
        memberships[identity.who].append(membership)
    names = sorted(
        memberships,
        key=lambda name: (-rebalances_started[name], memberships[name][0].from_ms, name),
    )
    return tuple(
        ClientMemberships(
            name=name,
            rebalances_started=rebalances_started[name],
            memberships=tuple(memberships[name]),
        )
        for name in names
    )


def _lag(detail: DetailRows, since_ms: int) -> tuple[LagPoint, ...]:
    records = accumulate(each.change for each in detail.lag)
    return tuple(
        LagPoint(
            # The lag of a step is that at its end.
            at_ms=since_ms + (each.number + 1) * detail.lag_step_ms,
            records=behind,
            seconds=each.seconds,
        )
        for each, behind in zip(detail.lag, records, strict=True)
    )
