"""What a report says in words: of all groups, and of one. Pure."""

from collections.abc import Sequence
from typing import Final

from kohort.pipeline.forensics.report.material import Finding, Overview, Starter, Summary
from kohort.pipeline.forensics.report.model import Answers
from kohort.pipeline.forensics.report.pain import (
    HOUR_MS,
    Need,
    need,
    ownerless_share,
    rebalances_per_hour,
    rebalancing_share,
)
from kohort.pipeline.forensics.report.words import (
    DEEDS,
    TRIGGERS,
    count,
    duration,
    listed,
    percent,
)

ONLY_EVENTS_KNOW: Final = (
    "Only events know when a rebalance really began, how long its join and sync phases took, whom "
    "everybody waited for, which reason a client gave, and which rebalances came to nothing."
)

CHANGES_MAX: Final = 2
"""Whoever changes more at once does not know what helped."""


def headline(groups: Sequence[Summary], total: int) -> str:
    if not total:
        return "There are no groups in these tables."
    now = sum(need(each) is Need.NOW for each in groups)
    soon = sum(need(each) is Need.SOON for each in groups)
    if total == 1:
        return {
            (1, 0): "The one group here needs you now.",
            (0, 1): "The one group here deserves a look.",
            (0, 0): "The one group here is quiet.",
        }[now, soon]
    if now:
        more = (
            f", and {soon:,} more {'deserves' if soon == 1 else 'deserve'} a look" if soon else ""
        )
        return f"{now:,} of {total:,} groups {'needs' if now == 1 else 'need'} you now{more}."
    if soon:
        deserve = "deserves" if soon == 1 else "deserve"
        return f"Nothing is critical; {soon:,} of {total:,} groups {deserve} a look."
    return f"All {total:,} groups are quiet."


def worst(groups: Sequence[Summary], span_ms: int) -> str:
    """About the first group, if it is in any need."""
    if not groups or need(groups[0]) is Need.NONE:
        return ""
    group = groups[0]
    return f"Worst is {group.group_id}: {in_short(group, span_ms)}."


def in_short(group: Summary, span_ms: int) -> str:
    """A group in half a sentence."""
    if not group.rebalances:
        return "no rebalances" if group.state else "offsets only, never any members"
    said = f"{count(group.rebalances, 'rebalance')} in {duration(span_ms)}"
    if starter := find_starter(group):
        share = "all" if starter.rebalances == group.rebalances else f"{starter.rebalances:,}"
        began = "" if group.rebalances == 1 else f"{share} of them "
        said += f", {began}started by {starter.party.who}"
    if group.ownerless_ms >= 1000:
        said += f"; {duration(group.ownerless_ms)} of partition-time without an owner"
    return said


def find_starter(group: Summary) -> Starter | None:
    """Whoever began more than its share: at least a third of them, and more than the next."""
    if not group.starters:
        return None
    first, *others = group.starters
    stands_out = not others or first.rebalances > others[0].rebalances
    return first if stands_out and first.rebalances * 3 >= group.rebalances else None


def knowledge(overview: Overview) -> str:
    exact = sum(each.exact for each in overview.summaries)
    total = sum(each.rebalances for each in overview.summaries)
    if not total:
        events = "with" if overview.events else "without"
        return f"These tables, {events} events of a Kohort node, tell of no rebalance at all."
    if exact == total:
        return (
            "A Kohort node noted each of these rebalances itself: who began it, and how long every "
            "part of it took."
        )
    inferred = [each for each in overview.summaries if each.confidence is not None]
    number = sum(each.rebalances - each.exact for each in inferred)
    sure = sum((each.confidence or 0) * (each.rebalances - each.exact) for each in inferred)
    how = (
        "worked out from the generations and commits of __consumer_offsets, with a mean "
        f"confidence of {percent(sure / number) if number else 'nothing'}. {ONLY_EVENTS_KNOW}"
    )
    if exact:
        return (
            f"A Kohort node noted {exact:,} of {total:,} rebalances itself. "
            f"Who began the others is {how}"
        )
    return f"There are no events of a Kohort node here. Who began a rebalance is {how}"


def known(group: Summary) -> str:
    """How it is known what is said of a group."""
    if not group.rebalances:
        return ""
    if group.exact == group.rebalances:
        return "Exact: told by the coordinator's own events."
    sure = percent(group.confidence or 0)
    if group.exact:
        rest = group.rebalances - group.exact
        return f"{rest:,} of {group.rebalances:,} causes are inferred, with {sure} confidence."
    return f"Causes are inferred, with {sure} confidence; times of costs are estimates."


def about(group: Summary) -> str:
    """What the group is, as the time of the report ended."""
    members = count(group.members, "member")
    partitions = count(group.partitions, "partition")
    under = f" under {group.protocol}" if group.protocol else ""
    said = {
        None: "Offsets without members.",
        "formed": f"{members}, {partitions}{under}.",
        "emptied": f"Nobody is left of it; it had {partitions}{under}.",
        "deleted": "Deleted.",
    }.get(group.state, "")
    if group.lag_records is None:
        return said
    behind = sum(number for status, number in group.statuses if status != "ok")
    said += f" {count(group.lag_records, 'record')} behind at the end"
    if not behind:
        return f"{said}."
    return f"{said}; {count(behind, 'partition')} {'does' if behind == 1 else 'do'} not keep up."


def answers(group: Summary, findings: Sequence[Finding], span_ms: int) -> Answers:
    return Answers(
        why=_why(group, span_ms),
        who=_who(group),
        cost=_cost(group),
        change=_change(group, findings),
    )


def _why(group: Summary, span_ms: int) -> str:
    if not group.rebalances:
        return (
            "It did not rebalance in this time."
            if group.state
            else "It has no members: somebody commits offsets under this name, and that is all."
        )
    is_long = group.rebalances > 1 and group.known_ms >= HOUR_MS
    rate = f", {rebalances_per_hour(group):.1f} an hour" if is_long else ""
    said = f"{count(group.rebalances, 'rebalance')} in {duration(span_ms)}{rate}."
    (first, _), *others = group.triggers or [("unknown", 0)]
    if not others:
        each = "Each" if group.rebalances > 1 else "It"
        return f"{said} {each} began because {_because(first)}."
    reasons = [f"{_because(trigger)} ({number:,})" for trigger, number in group.triggers[:3]]
    more = len(group.triggers) - 3
    rest = f"; {count(more, 'other cause')}" if more > 0 else ""
    return f"{said} They began because {'; '.join(reasons)}{rest}."


def _because(trigger: str) -> str:
    return TRIGGERS.get(trigger, "of something unknown" if trigger == "unknown" else trigger)


def _who(group: Summary) -> str:
    if not group.rebalances:
        return "Nobody."
    if not group.starters:
        return "It cannot be told: no rebalance names anybody who began it."
    first = group.starters[0]
    if find_starter(group) is None:
        return (
            f"Nobody in particular: {group.starters_total:,} programs began rebalances, none of "
            f"them more than {first.rebalances:,}."
        )
    deed = DEEDS.get(first.trigger, first.trigger)
    if group.rebalances == 1:
        return f"{first.party.who}, {deed}."
    mostly = "mostly " if first.rebalances > 1 else ""
    said = f"{first.party.who} began {first.rebalances:,} of {group.rebalances:,}, {mostly}{deed}."
    if len(group.starters) > 1:
        second = group.starters[1]
        said += f" Next is {second.party.who}, with {second.rebalances:,}."
    return said


def _cost(group: Summary) -> str:
    if not group.rebalances:
        return "Nothing."
    said = []
    if group.ownerless_ms:
        is_exact = group.exact == group.rebalances
        about = "" if is_exact else "about "
        said.append(
            f"{about}{duration(group.ownerless_ms)} of partition-time without an owner "
            f"({percent(ownerless_share(group))} of it)"
        )
    if group.rebalancing_ms:
        said.append(f"{percent(rebalancing_share(group))} of its time spent rebalancing")
    if group.moved:
        needless = f", {group.moved_needlessly:,} needlessly" if group.moved_needlessly else ""
        said.append(f"{count(group.moved, 'partition')} moved{needless}")
    if group.replayed:
        said.append(f"{count(group.replayed, 'record')} read again")
    if not said:
        return "Nothing that could be measured."
    text = listed(said)
    return f"{text[0].upper()}{text[1:]}."


def _change(group: Summary, findings: Sequence[Finding]) -> str:
    advised = [each for each in findings if each.severity != "notice"] or list(findings)
    if not advised and need(group) is not Need.NONE:
        return (
            "No known pattern explains it. See below who comes and goes, and ask what starts them."
        )
    if not advised:
        return (
            "Nothing: none of the known patterns shows."
            if group.rebalances
            else "Nothing, as far as rebalances go."
        )
    saved: dict[str, int] = {}
    against: dict[str, list[str]] = {}
    for each in advised:
        change = each.setting or each.advice.partition(". ")[0].rstrip(".")
        saved[change] = max(saved.get(change, 0), each.would_have_saved_ms or 0)
        if each.finding not in against.setdefault(change, []):
            against[change].append(each.finding)
    said = [
        f"{change}, against {listed([name.replace('-', ' ') for name in names])}"
        + (f": up to {duration(saved[change])} of partition-time saved" if saved[change] else "")
        for change, names in list(against.items())[:CHANGES_MAX]
    ]
    return "; then ".join(said) + "."
