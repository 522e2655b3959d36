"""The README.md of a generated history: its contents and the command that generates it again."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tools.histories.generator import HistoryCounts, HistoryOptions


def readme_of(options: "HistoryOptions", counts: "HistoryCounts") -> str:
    return "\n".join(
        (
            _TITLE,
            "Generated, not recorded: scripted members use the real group coordinator in virtual",
            "time. It contains no real data.",
            "",
            f"    {command_of(options)}",
            "",
            f"The same options generate the same bytes. Length: {options.hours} hours.",
            f"{_contents(counts)}.",
            "Offset retention is 30 % of that time, so some offsets expire within the history.",
            _FILES,
        )
    )


def live_readme_of(counts: "HistoryCounts") -> str:
    return "\n".join(
        (
            _TITLE,
            "A script runs real consumers against a real node. It contains no real data.",
            "",
            "    python -m tools.histories --real --to DIR",
            "",
            f"{_contents(counts)}. It uses the wall clock: each run generates different bytes, and",
            "the script records its own times, shortly before and after each rebalance.",
            _FILES,
        )
    )


def command_of(options: "HistoryOptions") -> str:
    """The command that generates this history again."""
    words = ["python -m tools.histories", f"--seed {options.seed}", "--to DIR"]
    words += [f"--kind {name}" for name in options.scenarios]
    if options.groups is not None:
        words.append(f"--groups {options.groups}")
    words.append(f"--hours {options.hours}")
    if not options.has_events:
        words.append("--no-events")
    words.append(f"--partitions {options.partitions}")
    return " ".join(words)


def _contents(counts: "HistoryCounts") -> str:
    return (
        f"Groups: {counts.groups}; records of `__consumer_offsets`: {counts.records};\n"
        f"events: {counts.events}; rebalances: {counts.rebalances};"
        f" pathologies: {counts.pathologies}; look-alikes: {counts.look_alikes}"
    )


_TITLE: Final = "# Labelled histories of consumer groups\n"

_FILES: Final = """
- `log/`: a log directory with Kafka's segment files. `__consumer_offsets-N` is complete: it was
  never compacted. `__kohort_events-0`, if it exists, has Kohort's events about its groups as JSON.
- `ends.jsonl`: the start and end offset of each consumed partition, at regular intervals.
- `truth.jsonl`: the labels, as the script knows them. The field `what` is one of:
  - `group`: the scenario of a group;
  - `pathology`: what the script did wrong on purpose: its kind, time range, client or topic, and
    how;
  - `look-alike`: something harmless, and the pathology that it resembles;
  - `rebalance`: generations, times, ending, trigger and the member that started it (`initiator`). A
    rebalance that was still in progress when the history ended has no `ended_ms`.

Times are milliseconds since 1970.
"""
