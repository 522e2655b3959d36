"""How right the forensics is, measured on histories whose truth is known.

`python -m tests.pipeline.forensics.scoring --seeds 101 102 > docs/forensics-accuracy.md` writes the
page anew; it takes minutes. The seeds should be ones that no rule was tuned on.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kohort.corpus.making import Plan, make
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.run import run
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.wish import ForensicsWish
from kohort.pipeline.session import SessionWish, open_session

MUST: Mapping[str, str] = {
    "rebalance-storm": "rebalance-storm",
    "slow-member": "slow-member",
    "evicted-by-poll-interval": "evicted-by-poll-interval",
    "evicted-by-session-timeout": "evicted-by-session-timeout",
    "crash-loop": "crash-loop",
    "deploy-in-a-row": "deploy-in-a-row",
    "leader-rejoin-loop": "leader-rejoin-loop",
    "eager-cost": "eager-protocol-cost",
    "too-many-members": "too-many-members",
    "stuck-rebalance": "stuck-group",
    "stuck-join": "stuck-group",
    "stuck-consumer": "stuck-group",
    "subscription-mismatch": "subscription-mismatch",
    "unowned-topic": "unowned-topic",
    "zombie-commits": "zombie-commits",
    "offset-rewind": "offset-rewinds",
    "expired-offsets": "expired-offsets",
}
"""What is to be found in a history of each kind of pathology."""

MAY: Mapping[str, frozenset[str]] = {
    "rebalance-storm": frozenset(
        ("crash-loop", "leader-rejoin-loop", "evicted-by-session-timeout")
    ),
    "crash-loop": frozenset(("rebalance-storm",)),
    "evicted-by-session-timeout": frozenset(("crash-loop", "stuck-rebalance", "zombie-commits")),
    "slow-member": frozenset(("evicted-by-poll-interval", "stuck-join")),
    "eager-protocol-cost": frozenset(
        (
            "rebalance-storm",
            "crash-loop",
            "slow-member",
            "deploy-in-a-row",
            "leader-rejoin-loop",
            "evicted-by-poll-interval",
            "evicted-by-session-timeout",
            "stuck-join",
        )
    ),
    "zombie-commits": frozenset(("evicted-by-session-timeout", "evicted-by-poll-interval")),
    "offset-rewinds": frozenset(("zombie-commits",)),
    "stuck-group": frozenset(("slow-member", "unowned-topic")),
}
"""Kinds in whose histories a finding is right as well, though they were made for another."""


@dataclass(kw_only=True)
class Score:
    triggers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What began a rebalance, and what was said."""
    culprits: Counter[bool] = field(default_factory=Counter)
    """Of those whose trigger is right."""
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    """A finding, and the kind of the group it was found in."""
    groups: Counter[str] = field(default_factory=Counter)
    """How many groups of each kind there are."""


def score(spark: SparkSession, seeds: Iterable[int], hours: int, *, has_events: bool) -> Score:
    total = Score()
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="kohort-scoring-") as name:
            corpus, target = Path(name) / "corpus", f"{Path(name) / 'tables'}"
            make(Plan(seed=seed, hours=hours, has_events=has_events), corpus)
            log, ends = f"{corpus / 'log'}", f"{corpus / 'ends.jsonl'}"
            run(spark, ForensicsWish(target=target, log=log, ends=ends))
            _judge(Store(spark, target), list(_read_truth(corpus)), total)
    return total


def _read_truth(corpus: Path) -> Iterator[dict[str, Any]]:
    for line in (corpus / "truth.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)


def _judge(store: Store, truth: list[dict[str, Any]], total: Score) -> None:
    kinds = {each["group"]: each["kind"] for each in truth if each["what"] == "group"}
    total.groups.update(kinds.values())
    true = [each for each in truth if each["what"] == "rebalance" and each["ending"] != "abandoned"]
    told = store.read(tables.REBALANCES).collect()
    for each in true:
        row = _match(each, told)
        if row is None:
            continue
        total.triggers[each["trigger"], row.trigger] += 1
        if row.trigger == each["trigger"] and each["culprit"] is not None:
            said = row.culprit.client_id if row.culprit is not None else None
            total.culprits[said == each["culprit"]["client_id"]] += 1
    found = {(row.finding, row.group_id) for row in store.read(tables.FINDINGS).collect()}
    total.found.update((finding, kinds[group]) for finding, group in found if group in kinds)


def _match(true: dict[str, Any], told: list[Any]) -> Any:
    """The row about the same rebalance: the same group and generation, the nearest in time."""
    rows = [
        row
        for row in told
        if row.group_id == true["group"] and row.generation_before == true["generation_before"]
    ]
    ended = true["ended_ms"]
    return min(rows, key=lambda row: abs(row.ended_at.timestamp() * 1000 - ended), default=None)


# The page

_OPENING = """\
# How right the forensics is

This page is written by `python -m tests.pipeline.forensics.scoring`; it is not edited by hand. It
was measured on the [corpus](corpus.md), seeds {seeds}, {hours} h each: histories of scripted
members through the real coordinator. No rule was tuned on these seeds. The corpus has its own idea
of what clients do, so figures on other people's clusters will be lower.
"""

_FINDINGS = """\
## Findings

Recall: of the groups in which a pathology was staged, those in which it was found. Precision: of
the groups in which a finding was made, those where it is right, because that pathology, or one that
brings it about, was staged there. In every corpus more groups are innocent than guilty, and some of
them look alike.
"""


def page(seeds: list[int], hours: int, exact: Score, inferred: Score) -> str:
    parts = [_OPENING.format(seeds=", ".join(map(str, seeds)), hours=hours)]
    parts.append("## Triggers, with events\n\n" + _trigger_table(exact))
    parts.append("## Triggers, inferred without events\n\n" + _trigger_table(inferred))
    parts.append(_FINDINGS + "\n" + _finding_table(exact, inferred))
    return "\n".join(parts)


def _trigger_table(found: Score) -> str:
    rows = []
    for trigger in sorted({true for true, _ in found.triggers}):
        said = {told: n for (true, told), n in found.triggers.items() if true == trigger}
        wrong = ", ".join(f"{told} {n}" for told, n in sorted(said.items()) if told != trigger)
        right, count = said.get(trigger, 0), sum(said.values())
        rows.append(f"| {trigger} | {count} | {_share(right, count)} | {wrong or '-'} |")
    right = sum(n for (true, told), n in found.triggers.items() if true == told)
    count = sum(found.triggers.values())
    rows.append(f"| **all** | {count} | **{_share(right, count)}** | |")
    culprit = _share(found.culprits[True], sum(found.culprits.values()))
    head = "| trigger | rebalances | right | taken for |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(rows) + f"\n\nOf those, the culprit is right in {culprit}.\n"


def _finding_table(exact: Score, inferred: Score) -> str:
    return (
        f"### With events\n\n{_recall_and_precision(exact)}\n"
        f"### Without events\n\n{_recall_and_precision(inferred)}"
    )


def _recall_and_precision(found: Score) -> str:
    head = (
        "| finding | recall | missed in | precision | wrong in |\n| --- | --- | --- | --- | --- |\n"
    )
    rows = [
        f"| {name} | {_recall(found, name)} | {_missed(found, name)} "
        f"| {_precision(found, name)} | {_wrong(found, name)} |"
        for name in sorted(set(MUST.values()))
    ]
    return head + "\n".join(rows) + "\n"


def _recall(found: Score, finding: str) -> str:
    kinds = [kind for kind, name in MUST.items() if name == finding]
    return _share(
        sum(found.found[finding, kind] for kind in kinds),
        sum(found.groups[kind] for kind in kinds),
    )


def _missed(found: Score, finding: str) -> str:
    kinds = [kind for kind, name in MUST.items() if name == finding]
    return _kinds({kind: found.groups[kind] - found.found[finding, kind] for kind in kinds})


def _precision(found: Score, finding: str) -> str:
    made = {kind: n for (name, kind), n in found.found.items() if name == finding}
    right = _right(finding)
    return _share(sum(n for kind, n in made.items() if kind in right), sum(made.values()))


def _wrong(found: Score, finding: str) -> str:
    right = _right(finding)
    made = {kind: n for (name, kind), n in found.found.items() if name == finding}
    return _kinds({kind: n for kind, n in made.items() if kind not in right})


def _right(finding: str) -> set[str]:
    return {kind for kind, name in MUST.items() if name == finding} | MAY.get(finding, frozenset())


def _kinds(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {n}" for kind, n in sorted(counts.items()) if n) or "-"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ({part}/{whole})" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102, 103])
    parser.add_argument("--hours", type=int, default=4)
    options = parser.parse_args()
    settings = {"spark.sql.shuffle.partitions": "4"}
    wish = SessionWish(app_name="scoring", master="local[2]", memory="2g", settings=settings)
    with open_session(wish) as spark:
        exact = score(spark, options.seeds, options.hours, has_events=True)
        inferred = score(spark, options.seeds, options.hours, has_events=False)
    sys.stdout.write(page(options.seeds, options.hours, exact, inferred))


if __name__ == "__main__":
    main()
