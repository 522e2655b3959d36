"""docs/events.md: every event, field by field, each with an example from a made-up group's life."""

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from kohort.coordinator.notes import DEPARTURES, ENDINGS, JOIN_ENDS, TRIGGERS, Note
from kohort.node.events import json_of
from kohort.node.events_example import play
from kohort.node.events_table import ALWAYS, FIELDS, KINDS, MEANINGS, SPELLED
from kohort.node.markdown import code, page, table

_COLUMNS: Final = 90

_OPENING: Final = """\
# The events of a group

This page is written by `python -m kohort.node.docs events` from the notes the coordinator takes
([notes.py](../src/kohort/coordinator/notes.py)) and what their fields mean
([events_table.py](../src/kohort/node/events_table.py)); it is not edited by hand.

A node writes what it notices about its groups to the topic `__kohort_events`: who joined, who is
out and why, and the whole story of every rebalance. Any Kafka client can read it; only the node
writes to it. It has one partition, so that events are in their order.

    kafka-console-consumer.sh --bootstrap-server HOST:PORT --topic __kohort_events --from-beginning

- A record's key is the group id, its value one JSON object, its timestamp the time of the event.
- The topic is made with the first event, and keeps each for `kohort.events.retention.ms`, which is
  30 days; later on, its `retention.ms` and `retention.bytes` are altered as any topic's are.
- `kohort.events.enable=false` turns it off.
- Names stay. A field may be added, so ignore what you do not know; none is renamed or removed.
- An event follows what it tells of, and nobody waits for it: after a crash the last ones may be
  missing. Where the disk is full they are dropped, which the journal tells as `events-lost`."""

_SPLITTING: Final = """\
## Large events

A rebalance of some thousands of members is more than a record may hold, which is
`max.message.bytes`, a megabyte unless it is altered. Such an event is written as several records
in a row, which have `part` and `parts`: each repeats the plain fields, and the lists are shared
out among them in their order. To read one, put the lists of its parts together. Only if a single
item of a list is too large in itself is the event dropped, and the journal tells `events-lost`."""

_ALWAYS: Final = """\
## Fields of every event

They come first, and are in all kinds of events but for what is said of them."""

_TOPICS: Final = """\
The kind `topics` is an object: each topic's name, and the list of its partitions. Where a group
is not one of consumers its assignments are for its own kind to read, and they are null."""


def events_markdown() -> str:
    examples = _examples()
    blocks = [
        _OPENING,
        _ALWAYS,
        table(
            ("field", "kind", "meaning"),
            ((code(name), kind, meaning) for name, (kind, meaning) in ALWAYS.items()),
        ),
    ]
    for cls, kind in KINDS.items():
        blocks += [f"## {kind}", MEANINGS[cls]]
        if FIELDS[cls]:
            blocks.append(_fields(cls))
        blocks.append(_shown(examples[cls]))
    blocks.append("## What the fields are made of")
    for cls in FIELDS:
        if cls not in KINDS:
            blocks += [f"### {_name(cls)}", MEANINGS[cls], _fields(cls)]
    blocks += [
        _TOPICS,
        "## Words",
        _words("trigger", TRIGGERS),
        _words("ending", ENDINGS),
        _words("join_ended_by", JOIN_ENDS),
        _words("departure", DEPARTURES),
        "The states are those of [group-states.md](group-states.md); errors have Kafka's names.",
        _SPLITTING,
    ]
    return page(*blocks)


def _examples() -> dict[type, Note]:
    """The fullest of each kind."""
    fullest: dict[type, Note] = {}
    for note in sorted(play(), key=lambda note: len(json_of(note))):
        fullest[type(note)] = note
    return fullest


def _shown(note: Note) -> str:
    return f"```json\n{_laid_out(json.loads(json_of(note)), 0)}\n```"


def _laid_out(thing: Any, depth: int) -> str:
    """In one line what fits into one."""
    line = json.dumps(thing)
    if len(line) + depth <= _COLUMNS or not isinstance(thing, dict | list):
        return line
    if isinstance(thing, dict):
        brackets = "{}"
        rows = [f"{json.dumps(name)}: {_laid_out(each, depth + 2)}" for name, each in thing.items()]
    else:
        brackets = "[]"
        rows = [_laid_out(each, depth + 2) for each in thing]
    margin = " " * (depth + 2)
    inner = f",\n{margin}".join(rows)
    return f"{brackets[0]}\n{margin}{inner}\n{' ' * depth}{brackets[1]}"


def _fields(cls: type) -> str:
    hints = get_type_hints(cls)
    rows = (
        (code(name), SPELLED.get((cls, name)) or kind_of(hints[name]), meaning)
        for name, meaning in FIELDS[cls].items()
    )
    return table(("field", "kind", "meaning"), rows)


def kind_of(hint: Any) -> str:
    """What JSON makes of a field of this type, in words."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(kind_of(each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return f"list of {kind_of(get_args(hint)[0])}"
    if hint is type(None):
        return "null"
    plain = getattr(hint, "__supertype__", hint)
    if plain is bool:
        return "true or false"
    if dataclasses.is_dataclass(plain):
        return f"[{_name(plain)}](#{_name(plain)})"
    if plain is str or issubclass(plain, Enum):
        return "text"
    assert plain is int, f"no word for a field of type {hint}"
    return "number"


def _name(cls: Any) -> str:
    return str(cls.__name__).lower()


def _words(field: str, words: Mapping[Any, str]) -> str:
    return table((field, "meaning"), ((code(word), text) for word, text in words.items()))
