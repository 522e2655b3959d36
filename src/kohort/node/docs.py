"""The node's pages for people, written from the tables that it obeys.

`python -m kohort.node.docs events > docs/events.md` writes one anew; so with the other PAGES.
Nothing that serves uses this module.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Final

from kohort.log import settings_table
from kohort.node import journal
from kohort.node.config import SETTINGS, TOPIC_DEFAULTS, text_of
from kohort.node.events_page import events_markdown
from kohort.node.markdown import code, page, table
from kohort.node.metrics_table import SECTIONS

_METRICS_OPENING: Final = """\
# What a node tells about itself

This page is written by `python -m kohort.node.docs metrics` from the rows that the figures are made
of ([metrics_table.py](../src/kohort/node/metrics_table.py)) and from the journal's words; it is not
edited by hand.

## Figures

`kohort serve --metrics 127.0.0.1:9464` serves them at `http://127.0.0.1:9464/metrics`, in the text
form that Prometheus reads; so does `kohort.Node(metrics="127.0.0.1:0")`, whose `metrics_url` says
where. They are read from the living node when they are asked for, and begin with it: a restart sets
every counter to zero. Whoever can reach the address can read them, so keep it to yourself.

A figure whose labels have not occurred yet is absent. Only `kohort.metrics.groups.max` groups and
`kohort.metrics.partitions.max` partitions have labels of their own; all further ones are summed up
under `(other)`. A group that is gone makes room for another.

A histogram is queried by its parts: `_bucket`, `_count` and `_sum`. Beside these there are the
usual `process_` figures, such as `process_resident_memory_bytes`."""

_JOURNAL_OPENING: Final = """\
## The journal

What happens to the node, as against its groups, goes to the logger `kohort`; `kohort serve` writes
it to standard error. A line is a time, a word, and facts as `name=value`, in quotes where a value
has spaces."""

_SETTINGS_OPENING: Final = """\
# Settings

This page is written by `python -m kohort.node.docs settings` from the table of settings
([config.py](../src/kohort/node/config.py)) and the one of topic settings
([settings_table.py](../src/kohort/log/settings_table.py)); it is not edited by hand.

## Of the node

Settings have Kafka's names; those that Kafka does not know begin with `kohort`. They are given in a
TOML file, `kohort serve --config FILE`, or one by one, `kohort serve --set NAME=VALUE`, which wins;
to an embedded node as `kohort.Node(settings={...})`. They hold until the node ends. A name that
does not exist is refused. `kohort serve --settings` prints this table."""

_TOPICS_OPENING: Final = """\
## Of a topic

A topic has settings of its own, which CreateTopics and IncrementalAlterConfigs give and
DescribeConfigs tells. Where it has none, the node's setting in the last column holds, or else the
default."""

_UNHONOURED_OPENING: Final = """\
These are checked and kept, for the tools that set them, and change nothing."""


def metrics_markdown() -> str:
    blocks = [_METRICS_OPENING]
    for title, metrics in SECTIONS.items():
        rows = (
            (code(each.name), each.kind, _labels(each.labels), each.meaning, each.kafka)
            for each in metrics
        )
        blocks += [f"### {title}", table(("name", "kind", "labels", "meaning", "in Kafka"), rows)]
    words = (
        (code(event), ", ".join(map(code, facts)), meaning)
        for event, (facts, meaning) in journal.WORDS.items()
    )
    return page(*blocks, _JOURNAL_OPENING, table(("word", "facts", "meaning"), words))


def _labels(labels: tuple[str, ...]) -> str:
    return ", ".join(map(code, labels))


def settings_markdown() -> str:
    own = (
        (code(each.name), code(text_of(each.default)) or "(empty)", each.kind, each.meaning)
        for each in SETTINGS.values()
    )
    shown = [each for each in settings_table.SETTINGS.values() if not each.is_internal]
    honoured = (_topic_row(each) for each in shown if each.is_honoured)
    unhonoured = (_topic_row(each)[:4] for each in shown if not each.is_honoured)
    head = ("name", "default", "kind", "meaning")
    return page(
        _SETTINGS_OPENING,
        table(head, own),
        _TOPICS_OPENING,
        table((*head, "of the node"), honoured),
        _UNHONOURED_OPENING,
        table(head, unhonoured),
    )


def _topic_row(setting: settings_table.Setting) -> tuple[str, ...]:
    kind = setting.kind.name.lower()
    if setting.choices:
        kind = " or ".join(map(code, setting.choices))
        kind = f"list of {kind}" if setting.kind is settings_table.Kind.LIST else kind
    of_node = code(TOPIC_DEFAULTS.get(setting.name, ""))
    default = code(setting.default) or "(empty)"
    return code(setting.name), default, kind, setting.meaning, of_node


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "events": events_markdown,
    "metrics": metrics_markdown,
    "settings": settings_markdown,
}
"""By the names they have under docs/."""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in PAGES:
        sys.stderr.write(f"python -m kohort.node.docs {'|'.join(PAGES)}\n")
        return 2
    sys.stdout.write(PAGES[arguments[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
