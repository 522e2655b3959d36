"""The accuracy of forensics, measured on labelled histories.

`python -m tests.pipeline.forensics.accuracy --seeds 101 102 > PAGE` generates
docs/reference/forensics-accuracy.md; it takes minutes. Use seeds that no rule was tuned on.
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

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.options import ForensicsOptions
from kohort.pipeline.forensics.run import run
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.session import SessionOptions, open_session
from tools.histories.generator import HistoryOptions, generate

EXPECTED: Mapping[str, str] = {
    "rebalance-storm": "rebalance-storm",
    "slow-member": "slow-member",
    "evicted-by-poll-interval": "evicted-by-poll-interval",
    "evicted-by-session-timeout": "evicted-by-session-timeout",
    "crash-loop": "crash-loop",
    "deploy-in-a-row": "rolling-restart",
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
"""The finding that each scenario with a pathology must have."""

ALSO_RIGHT: Mapping[str, frozenset[str]] = {
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
"""Further scenarios in which a finding is right."""


@dataclass(kw_only=True)
class AccuracyCounts:
    triggers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The labelled trigger and the reported trigger."""
    initiators: Counter[bool] = field(default_factory=Counter)
    """Whether the initiator is right, if the trigger is right."""
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    """A finding and the scenario of its group."""
    groups: Counter[str] = field(default_factory=Counter)
    """The number of groups of each scenario."""


def measure(
    spark: SparkSession, seeds: Iterable[int], hours: int, *, has_events: bool
) -> AccuracyCounts:
    total = AccuracyCounts()
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="kohort-accuracy-") as name:
            history, target = Path(name) / "history", f"{Path(name) / 'tables'}"
            generate(HistoryOptions(seed=seed, hours=hours, has_events=has_events), history)
            log, ends = f"{history / 'log'}", f"{history / 'ends.jsonl'}"
            run(spark, ForensicsOptions(target=target, log=log, ends=ends))
            _compare(Store(spark, target), list(_read_labels(history)), total)
    return total


def _read_labels(history: Path) -> Iterator[dict[str, Any]]:
    for line in (history / "truth.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)


def _compare(store: Store, labels: list[dict[str, Any]], total: AccuracyCounts) -> None:
    scenarios = {each["group"]: each["kind"] for each in labels if each["what"] == "group"}
    total.groups.update(scenarios.values())
    true = [
        each for each in labels if each["what"] == "rebalance" and each["ending"] != "abandoned"
    ]
    reported = store.read(tables.REBALANCES).collect()
    for each in true:
        row = _match(each, reported)
        if row is None:
            continue
        total.triggers[each["trigger"], row.trigger] += 1
        if row.trigger == each["trigger"] and each["initiator"] is not None:
            reported_client = row.initiator.client_id if row.initiator is not None else None
            total.initiators[reported_client == each["initiator"]["client_id"]] += 1
    found = {(row.finding, row.group_id) for row in store.read(tables.FINDINGS).collect()}
    total.found.update(
        (finding, scenarios[group]) for finding, group in found if group in scenarios
    )


def _match(true: dict[str, Any], reported: list[Any]) -> Any:
    """The row of the same rebalance: same group and generation, nearest in time."""
    rows = [
        row
        for row in reported
        if row.group_id == true["group"] and row.generation_before == true["generation_before"]
    ]
    ended = true["ended_ms"]
    return min(rows, key=lambda row: abs(row.ended_at.timestamp() * 1000 - ended), default=None)


# The page

_OPENING = """\
# The accuracy of forensics

This page is generated by `python -m tests.pipeline.forensics.accuracy`; do not edit it by hand. It
was measured on [labelled histories](../explanation/labelled-histories.md) with the seeds {seeds},
{hours} h each: scripted members and the real coordinator. No rule was tuned on these seeds. Real
clients behave in more ways than scripted members, so the accuracy on other clusters will be lower.
"""

_FINDINGS = """\
## Findings

Recall is the share of groups with a pathology in which it was found. Precision is the share of
groups with a finding in which it is right: they have this pathology, or one that causes it. In
every history most groups have no pathology, and some only resemble one.
"""


_INITIATORS = "If the trigger is right, the initiator is right in"


def page(seeds: list[int], hours: int, exact: AccuracyCounts, inferred: AccuracyCounts) -> str:
    parts = [_OPENING.format(seeds=", ".join(map(str, seeds)), hours=hours)]
    parts.append("## Triggers, with events\n\n" + _trigger_table(exact))
    parts.append("## Triggers, inferred without events\n\n" + _trigger_table(inferred))
    parts.append(_FINDINGS + "\n" + _finding_table(exact, inferred))
    return "\n".join(parts)


def _trigger_table(found: AccuracyCounts) -> str:
    rows = []
    for trigger in sorted({true for true, _ in found.triggers}):
        counts = {reported: n for (true, reported), n in found.triggers.items() if true == trigger}
        wrong = ", ".join(
            f"{reported} {n}" for reported, n in sorted(counts.items()) if reported != trigger
        )
        right, count = counts.get(trigger, 0), sum(counts.values())
        rows.append(f"| {trigger} | {count} | {_share(right, count)} | {wrong or '-'} |")
    right = sum(n for (true, reported), n in found.triggers.items() if true == reported)
    count = sum(found.triggers.values())
    rows.append(f"| **all** | {count} | **{_share(right, count)}** | |")
    initiator = _share(found.initiators[True], sum(found.initiators.values()))
    head = "| trigger | rebalances | right | reported as |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(rows) + f"\n\n{_INITIATORS} {initiator}.\n"


def _finding_table(exact: AccuracyCounts, inferred: AccuracyCounts) -> str:
    return (
        f"### With events\n\n{_recall_and_precision(exact)}\n"
        f"### Without events\n\n{_recall_and_precision(inferred)}"
    )


def _recall_and_precision(found: AccuracyCounts) -> str:
    head = (
        "| finding | recall | missed in | precision | wrong in |\n| --- | --- | --- | --- | --- |\n"
    )
    rows = [
        f"| {name} | {_recall(found, name)} | {_missed(found, name)} "
        f"| {_precision(found, name)} | {_wrong(found, name)} |"
        for name in sorted(set(EXPECTED.values()))
    ]
    return head + "\n".join(rows) + "\n"


def _recall(found: AccuracyCounts, finding: str) -> str:
    scenarios = [scenario for scenario, name in EXPECTED.items() if name == finding]
    return _share(
        sum(found.found[finding, scenario] for scenario in scenarios),
        sum(found.groups[scenario] for scenario in scenarios),
    )


def _missed(found: AccuracyCounts, finding: str) -> str:
    scenarios = [scenario for scenario, name in EXPECTED.items() if name == finding]
    return _scenarios(
        {
            scenario: found.groups[scenario] - found.found[finding, scenario]
            for scenario in scenarios
        }
    )


def _precision(found: AccuracyCounts, finding: str) -> str:
    made = {scenario: n for (name, scenario), n in found.found.items() if name == finding}
    right = _right(finding)
    return _share(sum(n for scenario, n in made.items() if scenario in right), sum(made.values()))


def _wrong(found: AccuracyCounts, finding: str) -> str:
    right = _right(finding)
    made = {scenario: n for (name, scenario), n in found.found.items() if name == finding}
    return _scenarios({scenario: n for scenario, n in made.items() if scenario not in right})


def _right(finding: str) -> set[str]:
    return {scenario for scenario, name in EXPECTED.items() if name == finding} | ALSO_RIGHT.get(
        finding, frozenset()
    )


def _scenarios(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{scenario} {n}" for scenario, n in sorted(counts.items()) if n) or "-"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ({part}/{whole})" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102, 103])
    parser.add_argument("--hours", type=int, default=4)
    options = parser.parse_args()
    settings = {"spark.sql.shuffle.partitions": "4"}
    session = SessionOptions(app_name="accuracy", master="local[2]", memory="2g", settings=settings)
    with open_session(session) as spark:
        exact = measure(spark, options.seeds, options.hours, has_events=True)
        inferred = measure(spark, options.seeds, options.hours, has_events=False)
    sys.stdout.write(page(options.seeds, options.hours, exact, inferred))


if __name__ == "__main__":
    main()
