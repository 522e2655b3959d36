"""What a write is to do, from its options and columns: checked before any task has begun.

The columns are those of Spark's own Kafka sink. Pure: it knows neither Spark nor a producer.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from kohort.pipeline.errors import BadSourceOption, PipelineError
from kohort.pipeline.sink.settings import delivery_ms, read_settings
from kohort.types import Millis, Topic, value

_HEADERS: Final = "array<struct<key:string,value:binary>>"

_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "partition": ("int",),
    "headers": (_HEADERS,),
}
"""The columns that become parts of a record. All others are not written, as in Spark's own sink."""

_CASTS: Final = {
    "topic": "string",
    "key": "string",
    "value": "string",
    "partition": "int",
    "headers": _HEADERS,
}

_OURS: Final = ("topic", "includeHeaders")
"""The second is for reading; whoever copies options from there is not refused for it."""

_SPARKS: Final = frozenset(
    {
        "checkpointlocation",
        "queryname",
        "asyncprogresstrackingenabled",
        "asyncprogresstrackingcheckpointintervalms",
        "_asyncprogresstrackingoverridesinksupportcheck",
    }
)
"""What Spark hands on though it is meant for Spark."""


class BadColumns(PipelineError, ValueError):
    """Rows that cannot become records: a column is missing, of another type, or has a bad value."""


@value
class Plan:
    """All that a task needs to know."""

    topic: Topic | None
    """Where all records go; None where each says so in its column."""
    columns: Mapping[str, int]
    """Which column of a row is which part of a record."""
    settings: Mapping[str, str]
    """The producer's. May hold passwords, so it is never shown."""
    delivery_ms: Millis

    def __repr__(self) -> str:
        return f"Plan(topic={self.topic!r}, columns={self.columns!r})"


def make_plan(options: Mapping[str, str], columns: Sequence[tuple[str, str]]) -> Plan:
    """From options, and columns as names with Spark's short words for their types."""
    topic, kafka = _read_options(options)
    settings = read_settings(kafka)
    return Plan(
        topic=topic,
        columns=_read_columns(columns, has_topic=topic is not None),
        settings=settings,
        delivery_ms=delivery_ms(settings),
    )


def _read_options(options: Mapping[str, str]) -> tuple[Topic | None, dict[str, str]]:
    """Spark does not tell upper from lower case in names, and neither do we."""
    kafka: dict[str, str] = {}
    topic = None
    for given, text in options.items():
        name = given.lower()
        if name.startswith("kafka."):
            kafka[name.removeprefix("kafka.")] = text
        elif name == "topic":
            topic = Topic(text)
        elif name not in _SPARKS and name != "includeheaders":
            raise BadSourceOption(f"there is no option {given}{_hint(name)}")
    if topic is not None and not topic.strip():
        raise BadSourceOption("the option topic is empty: name a topic, or leave it out")
    return topic, kafka


def _hint(name: str) -> str:
    if name == "path":
        return ': a topic is no path; save without one, and give .option("topic", NAME)'
    close = get_close_matches(name, [each.lower() for each in _OURS], n=1)
    return "".join(f"; did you mean {each}?" for each in _OURS if each.lower() in close)


def _read_columns(columns: Sequence[tuple[str, str]], *, has_topic: bool) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, (name, kind) in enumerate(columns):
        # The option wins, so that a topic that was read can be written to another.
        if name not in _TYPES or (name == "topic" and has_topic):
            continue
        if name in found:
            raise BadColumns(f"there are two columns named {name}: drop or rename one")
        if not _fits(kind, _TYPES[name]):
            raise BadColumns(
                f"the column {name} is {kind}, and must be {' or '.join(_TYPES[name])}: "
                f"CAST({name} AS {_CASTS[name]})"
            )
        found[name] = place
    names = ", ".join(name for name, _ in columns)
    if "value" not in found:
        raise BadColumns(
            f"there is no column value among {names}: a record needs one, a string or binary; "
            "to_json(struct(*)) AS value makes one of all columns"
        )
    if not has_topic and "topic" not in found:
        raise BadColumns(
            f"nothing says which topic to write to: there is no column topic among {names}; "
            'add one, or give .option("topic", NAME)'
        )
    return found


def _fits(kind: str, wanted: tuple[str, ...]) -> bool:
    # Where text is compared by other rules, it is text all the same.
    return kind in wanted or ("string" in wanted and kind.startswith("string collate "))
