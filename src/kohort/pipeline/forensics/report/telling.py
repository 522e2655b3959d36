"""From the rows of the tables to a report: groups ranked, the worst of them in full. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate

from kohort.pipeline.forensics.report import model, sentences
from kohort.pipeline.forensics.report.material import Detail, Life, Overview, Summary
from kohort.pipeline.forensics.report.pain import (
    MEASURE,
    need,
    ownerless_share,
    pain,
    rebalances_per_hour,
    rebalancing_share,
)
from kohort.pipeline.forensics.report.words import SEVERITIES, STATUSES, count


def tell(overview: Overview, ranked: Sequence[Summary], details: Sequence[Detail]) -> model.Report:
    """`ranked` are the overview's groups, the worst first; those with details are told in full."""
    by_name = {each.group_id: each for each in ranked}
    in_full = {each.group_id for each in details}
    span_ms = _span(overview)
    total = sum(each.rebalances for each in ranked)
    return model.Report(
        headline=sentences.headline(ranked, overview.groups),
        worst=sentences.worst(ranked, span_ms),
        since_ms=overview.since_ms,
        until_ms=overview.until_ms,
        bin_ms=overview.bin_ms,
        knowledge=sentences.knowledge(overview),
        is_exact=sum(each.exact for each in ranked) == total,
        measure=MEASURE,
        groups_total=overview.groups,
        commits=overview.commits,
        events=overview.events,
        undecodable=overview.undecodable,
        left_out=_left_out(overview, in_full),
        groups=tuple(_group(each, span_ms, is_in_full=each.group_id in in_full) for each in ranked),
        stories=tuple(_story(each, by_name[each.group_id], overview) for each in details),
    )


def _span(overview: Overview) -> int:
    if overview.since_ms is None or overview.until_ms is None:
        return 0
    return overview.until_ms - overview.since_ms


def _left_out(overview: Overview, in_full: set[str]) -> tuple[str, ...]:
    listed = len(overview.summaries)
    said = []
    if listed < overview.groups:
        said.append(
            f"{count(overview.groups - listed, 'group')} with no graver findings than those "
            "listed are counted, and not listed."
        )
    if len(in_full) < listed:
        groups = f"{count(len(in_full), 'group')} with the most pain"
        said.append(
            f"The {groups} {'is' if len(in_full) == 1 else 'are'} shown in full. To see another "
            "one in full, make a report of that group alone."
        )
    told = [each for each in overview.summaries if each.statuses]
    if told and all(each.lag_records is None for each in told):
        said.append(
            "Nobody looked at where the logs end, so nothing is known of lag, nor whether a group "
            "that commits nothing has anything to read."
        )
    if overview.undecodable:
        said.append(
            f"{count(overview.undecodable, 'record')} could not be decoded; "
            "the table silver.undecodable has them, each with the reason."
        )
    return tuple(said)


def _group(group: Summary, span_ms: int, *, is_in_full: bool) -> model.Group:
    starter = sentences.find_starter(group)
    statuses = {status for status, number in group.statuses if number}
    if group.lag_records is None:
        # Where the end of a log is not known, ok is said for want of anything to say.
        statuses.discard("ok")
    severity = {each.finding: each.severity for each in reversed(group.findings)}
    for each in group.findings:
        if _grave(each.severity) < _grave(severity[each.finding]):
            severity[each.finding] = each.severity
    return model.Group(
        group_id=group.group_id,
        need=need(group),
        pain=pain(group),
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
        starter=starter.party.who if starter else None,
        findings=tuple(sorted(severity, key=lambda name: (_grave(severity[name]), name))),
        lag_records=group.lag_records,
        lag_status=next((each for each in STATUSES if each in statuses), None),
        exact=group.exact,
        confidence=group.confidence,
        strip=group.bins,
        is_in_full=is_in_full,
    )


def _grave(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _story(detail: Detail, group: Summary, overview: Overview) -> model.Story:
    since_ms = overview.since_ms or 0
    rebalances = tuple(reversed(detail.rebalances))
    shown_from_ms = _shown_from(detail, group, since_ms)
    return model.Story(
        group_id=group.group_id,
        about=sentences.about(group),
        answers=sentences.answers(group, detail.findings, _span(overview)),
        knowledge=sentences.known(group),
        findings=detail.findings,
        shown_from_ms=shown_from_ms,
        left_out=_cut(detail, group),
        rebalances=rebalances,
        programs=_programs(detail),
        places=tuple(sorted({place for each in detail.stretches for place in each.places})),
        stretches=detail.stretches,
        absences=detail.absences,
        lag=_lag(detail, since_ms),
        laggards=detail.laggards,
    )


def _shown_from(detail: Detail, group: Summary, since_ms: int) -> int:
    """From here on every list is whole."""
    oldest = [since_ms]
    if len(detail.rebalances) < group.rebalances:
        last = detail.rebalances[-1]
        oldest.append(last.started_ms or last.ended_ms or since_ms)
    if len(detail.stretches) < detail.stretches_total:
        oldest.append(detail.stretches[-1].from_ms)
    return max(oldest)


def _cut(detail: Detail, group: Summary) -> tuple[str, ...]:
    kinds: tuple[tuple[int, int, str], ...] = (
        (len(detail.rebalances), group.rebalances, "rebalances, the latest"),
        (len(detail.lives), detail.lives_total, "memberships, the latest"),
        (len(detail.findings), detail.findings_total, "findings, the gravest"),
        (
            len({place for each in detail.stretches for place in each.places}),
            detail.places_total,
            "partitions, those without an owner for longest",
        ),
    )
    return tuple(
        f"{shown:,} of {total:,} {what}, are shown."
        for shown, total, what in kinds
        if shown < total
    )


def _programs(detail: Detail) -> tuple[model.Program, ...]:
    """Everyone by name; those who began the most first, then by their first coming."""
    began: dict[str, int] = defaultdict(int)
    for each in detail.rebalances:
        if each.culprit:
            began[each.culprit.who] += 1
    lives: dict[str, list[Life]] = defaultdict(list)
    for life in reversed(detail.lives):
        lives[life.party.who].append(life)
    names = sorted(lives, key=lambda name: (-began[name], lives[name][0].from_ms, name))
    return tuple(
        model.Program(
            name=name,
            began=began[name],
            lives=tuple(
                model.Life(
                    member_id=each.party.member_id or "",
                    from_ms=each.from_ms,
                    to_ms=each.to_ms,
                    from_generation=each.from_generation,
                    to_generation=each.to_generation,
                    ending=each.ending,
                    is_exact=each.is_exact,
                )
                for each in lives[name]
            ),
        )
        for name in names
    )


def _lag(detail: Detail, since_ms: int) -> tuple[model.LagPoint, ...]:
    records = accumulate(each.change for each in detail.lag)
    return tuple(
        model.LagPoint(
            # What is told of a step holds at its end.
            at_ms=since_ms + (each.number + 1) * detail.lag_step_ms,
            records=behind,
            seconds=each.seconds,
        )
        for each, behind in zip(detail.lag, records, strict=True)
    )
