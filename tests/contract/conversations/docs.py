"""Writes docs/conversations.md from the recordings.

`python -m tests.contract.conversations.docs > docs/conversations.md` renews it.
"""

import sys
from collections import defaultdict

from kohort.node.dispatch import SERVED
from kohort.wire.api import find_api
from tests.contract.conversations.counting import (
    Held,
    count_by_deviation,
    errors_in,
    find_held,
)

HEAD = """\
# Conversations

This page is written by `python -m tests.contract.conversations.docs` from what Apache Kafka {kafka}
was heard to say; it is not edited by hand.

A conversation is a script of requests that is held with Kohort and with Kafka, over real sockets,
with the same settings, in every version of the API it is about. What both answer is compared field
by field. Ids, addresses and the time of day are masked by when they first appear, so that the same
id must come back where Kafka has it; of what is said to people only that it is said. Kafka's side
is kept in `tests/contract/conversations/recorded`: Kohort is compared with it in every test run,
and where there is a Kafka, so is Kafka. `pytest tests/contract/conversations --rewrite` records
anew.

{conversations} conversations, {exchanges} exchanges compared, {deviating} of which differ in fields
that are named beside the reason. All others are equal.
"""


def page(kafka: str) -> str:
    held = list(find_held())
    deviating = count_by_deviation()
    parts = [
        HEAD.format(
            kafka=kafka,
            conversations=len({(each.file, each.sentence) for each in held}),
            exchanges=len(held),
            deviating=sum(deviating.values()),
        ),
        *_apis(held),
        *_deviations(),
        *_sentences(held),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _apis(held: list[Held]) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    errors: dict[str, set[str]] = defaultdict(set)
    for each in held:
        counts[each.exchange.api] += 1
        errors[each.exchange.api] |= set(errors_in(each.exchange.answer)) - {"NONE"}
    rows = ["## By API", "", "| API | versions | exchanges | errors |", "| --- | --- | --- | --- |"]
    for key, versions in sorted(SERVED.items()):
        api = find_api(key)
        assert api is not None
        span = f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else f"{versions[0]}"
        names = ", ".join(sorted(errors[api.name]))
        rows.append(f"| {api.name} | {span} | {counts[api.name]} | {names} |")
    return [*rows, f"\n{counts['(bytes)']} more were bytes that are no request.\n"]


def _deviations() -> list[str]:
    rows = [
        "## Differences",
        "",
        "Each is the beginning of a deviation that [not-supported.md](not-supported.md) gives in",
        "full, with the number of exchanges it was met in. Beside these, Kohort may give a reason",
        "for an error where Kafka gives none.",
        "",
        "| difference | exchanges |",
        "| --- | --- |",
    ]
    rows += [f"| {because} | {count} |" for because, count in sorted(count_by_deviation().items())]
    return [*rows, ""]


def _sentences(held: list[Held]) -> list[str]:
    by_file: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for each in held:
        by_file[each.file][each.sentence] += 1
    rows = ["## What was talked about", ""]
    for file, sentences in by_file.items():
        rows += [f"### {file.replace('_', ' ')}", ""]
        rows += [f"- {sentence} ({count})" for sentence, count in sentences.items()]
        rows.append("")
    return rows


if __name__ == "__main__":
    from tests.apache.jars import VERSION

    sys.stdout.write(page(VERSION))
