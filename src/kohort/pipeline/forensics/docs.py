"""The forensics page for people, written from the tables and findings themselves.

`python -m kohort.pipeline.forensics.docs > docs/forensics.md` writes it anew. Nothing that runs
uses this module.
"""

import sys
from typing import Final

from kohort.pipeline.forensics.findings import FINDINGS
from kohort.pipeline.forensics.tables import TABLES, Table

_OPENING: Final = """\
# Every rebalance explained

This page is written by `python -m kohort.pipeline.forensics.docs` from the tables
([tables.py](../src/kohort/pipeline/forensics/tables.py)) and the findings
([findings/](../src/kohort/pipeline/forensics/findings/__init__.py)); it is not edited by hand.

`kohort pipeline forensics` answers why a group keeps rebalancing, who started it, what it cost,
and what to change. It reads the history of groups in `__consumer_offsets`, of any Kafka, and, on
Kohort, in `__kohort_events`, and turns it into tables and one page.

    kohort pipeline forensics --bootstrap localhost:9092 --to tables --report report.html
    kohort pipeline forensics --from-log /copy/of/a/data/directory --to tables --report report.html

## Where the history comes from

- **A cluster** (`--bootstrap`): both topics are copied as a stream, under the group
  `kohort-forensics`, exactly once; the group itself is left out of the tables.
  `__consumer_offsets` is compacted, so what was copied while it streamed is the only history that
  stays: run it with `--continuous`, or often. With each batch the ends of all other topics' logs
  are looked at, for lag.
- **A copied log** (`--from-log`): the data directory of a Kohort node or of Apache Kafka, or one
  partition's directory in it, at a place that all of Spark's workers can read. `--ends` names a
  file of JSON lines with `at_ms`, `topic`, `partition`, `log_start` and `log_end`, where these
  are known.

Running it again adds what is new to bronze, and builds silver and gold anew. While it does so
there is no `_complete.json` in the directory: whoever reads the tables should wait for it.

## What only events can know

On Kohort every trigger, culprit, phase and departure is told by an event, and `is_exact` is true.
On any other Kafka they are inferred from the difference of two generations and the commits around
them: `confidence` says how sure that is. Nobody can know there: how long a member was waited for,
what a client gave as its reason, rebalances that led to no generation, and when exactly one
began. How often the rest is right, with events and without, was measured on histories whose truth
is known: [forensics-accuracy.md](forensics-accuracy.md).

## Tables

Parquet, in `LAYER/NAME`. Names and types stay; a column may be added. Times are UTC."""

_FINDINGS: Final = """\
## Findings

Each has its evidence, advice and, where there is one, the setting to change;
`would_have_saved_ms` is an estimate of partition-time without an owner."""


def forensics_markdown() -> str:
    parts = [_OPENING, *(_describe(each) for each in TABLES)]
    rows = [f"| `{each.name}` | {each.meaning} |" for each in FINDINGS]
    parts += [_FINDINGS, "\n".join(("| finding | meaning |", "| --- | --- |", *rows))]
    return "\n\n".join(parts) + "\n"


def _describe(table: Table) -> str:
    rows = [f"| `{each.name}` | `{each.type.lower()}` | {each.meaning} |" for each in table.columns]
    head = ("| column | type | meaning |", "| --- | --- | --- |")
    heading = f"### {table.layer} / {table.name}"
    return "\n".join((heading, "", table.meaning, "", *head, *rows))


if __name__ == "__main__":
    sys.stdout.write(forensics_markdown())
