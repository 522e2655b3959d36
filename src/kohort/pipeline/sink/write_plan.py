"""Check the options and columns of a write before any task starts.

The columns are those of Spark's own Kafka sink. Pure: no Spark and no producer.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kohort.pipeline.errors import BadSourceOption, PipelineError
from kohort.pipeline.sink.producer_settings import delivery_ms, read_producer_settings
from kohort.settings.readers import did_you_mean
from kohort.types import Millis, Topic, value

_HEADERS: Final = "array<struct<key:string,value:binary>>"

_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "partition": ("int",),
    "headers": (_HEADERS,),
}
"""The columns that are written. All others are ignored, as in Spark's own sink."""

_CASTS: Final = {
    "topic": "string",
    "key": "string",
    "value": "string",
    "partition": "int",
    "headers": _HEADERS,
}

_OWN_OPTIONS: Final = ("topic", "includeHeaders")
"""The second is an option of the source; it is accepted so that options can be copied."""

_SPARK_OPTIONS: Final = frozenset(
    {
        "checkpointlocation",
        "queryname",
        "asyncprogresstrackingenabled",
        "asyncprogresstrackingcheckpointintervalms",
        "_asyncprogresstrackingoverridesinksupportcheck",
    }
)
"""Options for Spark itself, which it also passes to the sink."""


class BadColumns(PipelineError, ValueError):
    """A column is missing, has the wrong type, or has a value that cannot be written."""


@value
class WritePlan:
    """What a task needs."""

    topic: Topic | None
    """The topic of all records; None if the column `topic` has it."""
    columns: Mapping[str, int]
    """The index of the column for each part of a record."""
    settings: Mapping[str, str]
    """Producer settings. They may hold passwords, so repr leaves them out."""
    delivery_ms: Millis

    def __repr__(self) -> str:
        return f"WritePlan(topic={self.topic!r}, columns={self.columns!r})"


def make_plan(options: Mapping[str, str], columns: Sequence[tuple[str, str]]) -> WritePlan:
    """`columns` are pairs of a name and a type in Spark's simpleString notation."""
    topic, kafka = _read_options(options)
    settings = read_producer_settings(kafka)
    return WritePlan(
        topic=topic,
        columns=_read_columns(columns, has_topic=topic is not None),
        settings=settings,
        delivery_ms=delivery_ms(settings),
    )


def _read_options(options: Mapping[str, str]) -> tuple[Topic | None, dict[str, str]]:
    """Option names are case-insensitive, as everywhere in Spark."""
    kafka: dict[str, str] = {}
    topic = None
    for given, text in options.items():
        name = given.lower()
        if name.startswith("kafka."):
            kafka[name.removeprefix("kafka.")] = text
        elif name == "topic":
            topic = Topic(text)
        elif name not in _SPARK_OPTIONS and name != "includeheaders":
            raise BadSourceOption(f"there is no option {given}{_hint(name)}")
    if topic is not None and not topic.strip():
        raise BadSourceOption("the option topic is empty: give a topic, or remove the option")
    return topic, kafka


def _hint(name: str) -> str:
    if name == "path":
        return ': call save() without a path, and give .option("topic", NAME)'
    return did_you_mean(name, _OWN_OPTIONS)


def _read_columns(columns: Sequence[tuple[str, str]], *, has_topic: bool) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, (name, kind) in enumerate(columns):
        # The option takes precedence, so that rows of one topic can be written to another.
        if name not in _TYPES or (name == "topic" and has_topic):
            continue
        if name in found:
            raise BadColumns(f"there are two columns named {name}: drop or rename one")
        if not _fits(kind, _TYPES[name]):
            raise BadColumns(
                f"the column {name} is {kind} and must be {' or '.join(_TYPES[name])}: "
                f"CAST({name} AS {_CASTS[name]})"
            )
        found[name] = place
    names = ", ".join(name for name, _ in columns)
    if "value" not in found:
        raise BadColumns(
            f"there is no column value among {names}: add one of type string or binary; "
            "to_json(struct(*)) AS value makes one from all columns"
        )
    if not has_topic and "topic" not in found:
        raise BadColumns(
            f"the topic is missing: there is no column topic among {names}; "
            'add one, or give .option("topic", NAME)'
        )
    return found


def _fits(kind: str, wanted: tuple[str, ...]) -> bool:
    # A collation changes comparison only; the bytes are the same.
    return kind in wanted or ("string" in wanted and kind.startswith("string collate "))
