"""The sentences of a report, about all groups and about one. Pure."""

from collections.abc import Sequence
from typing import Final

from kohort.pipeline.forensics.report.report_model import (
    FindingRow,
    GroupAnswers,
    GroupStatus,
    GroupSummary,
    Initiator,
    ReportOverview,
)
from kohort.pipeline.forensics.report.severity import (
    HOUR_MS,
    ownerless_share,
    rebalances_per_hour,
    rebalancing_share,
    status_of,
)
from kohort.text import rebalances as words
from kohort.text.numbers import count, duration, joined, percent

ONLY_IN_EVENTS: Final = (
    "Only Kohort's events record when a rebalance started, how long its join and sync phases took, "
    "which member was slowest, the reason a client gave, and which rebalances were interrupted."
)

CHANGES_MAX: Final = 2
"""Changing more settings at once hides which change helped."""


def headline(groups: Sequence[GroupSummary], total: int) -> str:
    return words.headline(
        groups=total,
        critical=sum(status_of(each) is GroupStatus.CRITICAL for each in groups),
        warnings=sum(status_of(each) is GroupStatus.WARNING for each in groups),
    )


def worst(groups: Sequence[GroupSummary], span_ms: int) -> str:
    """About the first group, unless it is healthy."""
    if not groups or status_of(groups[0]) is GroupStatus.HEALTHY:
        return ""
    group = groups[0]
    return f"Most severe: {group.group_id}: {in_short(group, span_ms)}."


def in_short(group: GroupSummary, span_ms: int) -> str:
    """A short description of a group: a clause without full stop."""
    if not group.rebalances:
        return "no rebalances" if group.state else "committed offsets only, no members"
    parts = f"{count(group.rebalances, 'rebalance')} in {duration(span_ms)}"
    if initiator := main_initiator(group):
        share = "all" if initiator.rebalances == group.rebalances else f"{initiator.rebalances:,}"
        of_them = "" if group.rebalances == 1 else f"{share} of them "
        parts += f", {of_them}started by {initiator.identity.who}"
    if group.ownerless_ms >= 1000:
        parts += f"; {duration(group.ownerless_ms)} of partition time without owner"
    return parts


def main_initiator(group: GroupSummary) -> Initiator | None:
    """The client that started at least a third of the rebalances, and more than any other."""
    if not group.initiators:
        return None
    first, *others = group.initiators
    stands_out = not others or first.rebalances > others[0].rebalances
    return first if stands_out and first.rebalances * 3 >= group.rebalances else None


def knowledge(overview: ReportOverview) -> str:
    exact = sum(each.exact for each in overview.summaries)
    total = sum(each.rebalances for each in overview.summaries)
    if not total:
        return "There are no rebalances in this time range."
    if exact == total:
        return (
            "Kohort's events recorded every rebalance: its cause, its initiator and the duration "
            "of each phase."
        )
    inferred = [each for each in overview.summaries if each.confidence is not None]
    number = sum(each.rebalances - each.exact for each in inferred)
    sure = sum((each.confidence or 0) * (each.rebalances - each.exact) for each in inferred)
    how = (
        "inferred from the generations and commits in __consumer_offsets, with a mean "
        f"confidence of {percent(sure / number) if number else '0 %'}. {ONLY_IN_EVENTS}"
    )
    if exact:
        return (
            f"Kohort's events recorded {exact:,} of {total:,} rebalances. "
            f"Causes and initiators of the others are {how}"
        )
    return f"There are no Kohort events. Causes and initiators are {how}"


def known(group: GroupSummary) -> str:
    """Whether the causes of a group's rebalances are exact or inferred."""
    if not group.rebalances:
        return ""
    if group.exact == group.rebalances:
        return "Exact: recorded by the coordinator's events."
    sure = percent(group.confidence or 0)
    if group.exact:
        rest = group.rebalances - group.exact
        return f"{rest:,} of {group.rebalances:,} causes are inferred, with {sure} confidence."
    return f"Causes are inferred, with {sure} confidence; durations are estimates."


def about(group: GroupSummary) -> str:
    """The group at the end of the report's time range."""
    members = count(group.members, "member")
    partitions = count(group.partitions, "partition")
    under = f", assignor {group.protocol}" if group.protocol else ""
    parts = {
        None: "Committed offsets without members.",
        "formed": f"{members}, {partitions}{under}.",
        "emptied": f"No members; it had {partitions}{under}.",
        "deleted": "Deleted.",
    }.get(group.state, "")
    if group.lag_records is None:
        return parts
    behind = sum(number for status, number in group.statuses if status != "ok")
    parts += f" Lag at the end: {count(group.lag_records, 'record')}"
    if not behind:
        return f"{parts}."
    return f"{parts}; {count(behind, 'partition')} {'is' if behind == 1 else 'are'} lagging."


def answers(group: GroupSummary, findings: Sequence[FindingRow], span_ms: int) -> GroupAnswers:
    return GroupAnswers(
        why=_why(group, span_ms),
        who=_who(group),
        cost=_cost(group),
        change=_change(group, findings),
    )


def _why(group: GroupSummary, span_ms: int) -> str:
    if not group.rebalances:
        return (
            "It did not rebalance in this time range."
            if group.state
            else "It has no members: a standalone consumer commits offsets with this group id."
        )
    is_long = group.rebalances > 1 and group.known_ms >= HOUR_MS
    rate = f", {rebalances_per_hour(group):.1f} per hour" if is_long else ""
    parts = f"{count(group.rebalances, 'rebalance')} in {duration(span_ms)}{rate}."
    (first, _), *others = group.triggers or [("unknown", 0)]
    if not others:
        each = "Each" if group.rebalances > 1 else "It"
        return f"{parts} {each} started because {_because(first)}."
    reasons = [f"{_because(trigger)} ({number:,})" for trigger, number in group.triggers[:3]]
    more = len(group.triggers) - 3
    rest = f"; {count(more, 'other cause')}" if more > 0 else ""
    return f"{parts} Causes: {'; '.join(reasons)}{rest}."


def _because(trigger: str, who: str | None = None) -> str:
    return "of an unknown cause" if trigger == "unknown" else words.cause(trigger, who)


def _who(group: GroupSummary) -> str:
    if not group.rebalances:
        return "No member started one."
    if not group.initiators:
        return "Unknown: no initiator is recorded for any rebalance."
    first = group.initiators[0]
    if main_initiator(group) is None:
        return (
            f"No single client: {group.initiators_total:,} clients started rebalances, none of "
            f"them more than {first.rebalances:,}."
        )
    cause = f"because {_because(first.trigger, 'it')}"
    if group.rebalances == 1:
        return f"{first.identity.who}, {cause}."
    mostly = "mostly " if first.rebalances > 1 else ""
    number = f"{first.rebalances:,} of {group.rebalances:,}"
    parts = f"{first.identity.who} started {number}, {mostly}{cause}."
    if len(group.initiators) > 1:
        second = group.initiators[1]
        parts += f" Next is {second.identity.who}, with {second.rebalances:,}."
    return parts


def _cost(group: GroupSummary) -> str:
    if not group.rebalances:
        return "No cost."
    parts = []
    if group.ownerless_ms:
        is_exact = group.exact == group.rebalances
        about = "" if is_exact else "about "
        parts.append(
            f"{about}{duration(group.ownerless_ms)} of partition time without owner "
            f"({percent(ownerless_share(group))})"
        )
    if group.rebalancing_ms:
        parts.append(f"{percent(rebalancing_share(group))} of the time spent rebalancing")
    if group.moved:
        needless = f" ({group.moved_needlessly:,} needlessly)" if group.moved_needlessly else ""
        parts.append(f"{count(group.moved, 'partition')} reassigned{needless}")
    if group.replayed:
        parts.append(f"{count(group.replayed, 'record')} reprocessed")
    if not parts:
        return "No measurable cost."
    text = joined(parts)
    return f"{text[0].upper()}{text[1:]}."


def _change(group: GroupSummary, findings: Sequence[FindingRow]) -> str:
    advised = [each for each in findings if each.severity != "notice"] or list(findings)
    if not advised and status_of(group) is not GroupStatus.HEALTHY:
        return (
            "No known pattern explains it. Check in the member list below which clients join and "
            "leave, and what starts them."
        )
    if not advised:
        return "Nothing: no known problem was found." if group.rebalances else "Nothing."
    by_change: dict[str, list[FindingRow]] = {}
    for each in advised:
        by_change.setdefault(each.setting or _first_sentence(each.advice), []).append(each)
    return " ".join(_advice(same) for same in list(by_change.values())[:CHANGES_MAX])


def _advice(findings: Sequence[FindingRow]) -> str:
    """One change, for all findings that advise it."""
    first = findings[0]
    names = dict.fromkeys(each.finding.replace("-", " ") for each in findings)
    text = f"For {joined(list(names))}: {_first_sentence(first.advice)}."
    if first.setting:
        text += f" Setting: {first.setting}."
    saved_ms = max(each.would_have_saved_ms or 0 for each in findings)
    if saved_ms:
        text += f" It would have saved up to {duration(saved_ms)} of partition time."
    return text


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
