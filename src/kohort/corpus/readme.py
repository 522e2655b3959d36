"""The page that lies beside every corpus: what it is, and how to make it again."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.corpus.making import Made, Plan


def page_of(plan: "Plan", made: "Made") -> str:
    return "\n".join(
        (
            _TITLE,
            "Made, not recorded: scripted members against a real group coordinator in virtual",
            "time. Nobody's data is in it.",
            "",
            f"    {command_of(plan)}",
            "",
            f"The same words give the same bytes. {_contents(made)}, in {plan.hours} hours.",
            "Committed offsets are kept for 30 % of that time, so that some expire within it.",
            _FILES,
        )
    )


def page_of_real(made: "Made") -> str:
    return "\n".join(
        (
            _TITLE,
            "Real consumers, told by a script what to do, against a real node. Nobody's data is",
            "in it.",
            "",
            "    kohort corpus --real --to DIR",
            "",
            f"{_contents(made)}. It went by the wall clock: the same words do not give the same",
            "bytes, and the truth has times as the script saw them from outside, a little before",
            "and a little after what they are about.",
            _FILES,
        )
    )


def command_of(plan: "Plan") -> str:
    """The words that make this corpus again."""
    words = ["kohort corpus", f"--seed {plan.seed}", "--to DIR"]
    words += [f"--kind {name}" for name in plan.kinds]
    if plan.groups is not None:
        words.append(f"--groups {plan.groups}")
    words.append(f"--hours {plan.hours}")
    if not plan.has_events:
        words.append("--no-events")
    words.append(f"--partitions {plan.partitions}")
    return " ".join(words)


def _contents(made: "Made") -> str:
    return (
        f"Groups: {made.groups}; records of `__consumer_offsets`: {made.records};\n"
        f"events: {made.events}; rebalances: {made.rebalances}; pathologies: {made.pathologies};"
        f" look-alikes: {made.look_alikes}"
    )


_TITLE: Final = "# Histories of consumer groups, with the truth about them\n"

_FILES: Final = """
- `log/`: a Kafka log directory with Kafka's own segment files. `__consumer_offsets-N` is whole: it
  was never compacted. `__kohort_events-0`, if there, is what Kohort noted about its groups as JSON.
- `ends.jsonl`: where the logs of the partitions that are read began and ended, now and then.
- `truth.jsonl`: what really happened, as the script knows it. Lines by their `what`:
  - `group`: which kind of history a group was given;
  - `pathology`: what was wrong on purpose: which kind, from when to when, who or which topic, how;
  - `look-alike`: what is innocent, and the pathology it resembles;
  - `rebalance`: each one, with its generations, times, ending, trigger and culprit. One that was
    not over when the history ended has no `ended_ms`.

Times are milliseconds since 1970.
"""
