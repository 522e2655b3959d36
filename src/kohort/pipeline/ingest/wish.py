"""What somebody wants of an ingest, and what is told of one. No Spark, no broker, no disk."""

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.source.options import Reset, SourceOptions, read_source_options
from kohort.types import value

ROWS_MAX: Final = 1_000_000
"""Of one batch, unless told otherwise: files of a good size, in memory that a laptop has."""

EVERY_S: Final = 5.0
EVERY_S_MAX: Final = 300.0
"""A group that rebalances has to wait for the batch that waits."""

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}

_NOT_TO_BE_SAID: Final = {
    "bootstrap.servers": "it has an option of its own, --bootstrap",
    "group.id": "it has an option of its own, --group",
    "group.instance.id": "it has an option of its own, --group-instance-id",
    "auto.offset.reset": "it has an option of its own, --from",
}


class Ending:
    """How whoever runs an ingest says that it should end."""

    def __init__(self) -> None:
        self.after_batch = threading.Event()
        """When the batch that runs is done, and the group knows."""
        self.at_once = threading.Event()
        """In the middle of a batch; the next run does it again."""


class EndedAtOnce(Exception):
    """It was told to, and what it was at is left to the next run."""


class BadWish(PipelineError, ValueError):
    """Something was asked for that cannot be."""


@value
class Wish:
    bootstrap_servers: str
    topics: tuple[str, ...]
    group_id: str
    target: str
    """A directory on any file system that Spark's Hadoop knows, and that all its workers share."""
    schema: str | None = None
    """Of JSON values: Spark's DDL, or a StructType in JSON. Without it, records are kept raw."""
    partition_by: tuple[str, ...] = ()
    is_continuous: bool = False
    rows_max: int = ROWS_MAX
    every_s: float = EVERY_S
    """At least so long from the beginning of a batch to that of the next, unless there is lag."""
    instance_id: str | None = None
    reset: Reset = Reset.EARLIEST
    skips_lost: bool = False
    kafka: Mapping[str, str] = field(default_factory=dict)
    """More options of the consumer."""


@value
class Progress:
    """How a running ingest stands. What is counted is of this run alone."""

    rows: int = 0
    bad: int = 0
    batches: int = 0
    seconds: float = 0.0
    rows_per_second: float = 0.0
    """Of the last batch."""
    lag: int | None = None
    group_state: str = "starting"
    generation: int | None = None
    is_ending: bool = False


@value
class Summary:
    rows: int
    bad: int
    batches: int
    seconds: float
    lag: int | None
    is_interrupted: bool
    is_group_told: bool
    """Whether the group's offsets are where the table ends."""
    has_left: bool
    """Whether the member is known to have ended, and so to have left its group."""
    rows_total: int
    """In the table, of all runs."""
    bad_total: int
    target: str
    data: str
    bad_data: str
    skipped: tuple[str, ...] = ()
    """What other members of the group had read in between."""


def source_options(wish: Wish) -> dict[str, str]:
    """For `format("kohort")`."""
    options = {
        "kafka.bootstrap.servers": wish.bootstrap_servers,
        "subscribe": ",".join(wish.topics),
        "group.id": wish.group_id,
        "auto.offset.reset": wish.reset.value,
        "includeHeaders": "true",
        "failOnDataLoss": "false" if wish.skips_lost else "true",
        "maxOffsetsPerTrigger": str(wish.rows_max),
        **{f"kafka.{name}": text for name, text in wish.kafka.items()},
    }
    if wish.instance_id is not None:
        options["group.instance.id"] = wish.instance_id
    return options


def check_wish(wish: Wish) -> SourceOptions:
    """BadWish or BadSourceOption where something contradicts itself."""
    for name, given in (("topic", wish.topics), ("group", wish.group_id), ("place", wish.target)):
        if not given or not all(given):
            raise BadWish(f"a {name} must be named")
    if wish.rows_max < 1:
        raise BadWish("a batch has at least one row")
    if not 0 <= wish.every_s <= EVERY_S_MAX:
        raise BadWish(
            f"a batch may wait for at most {EVERY_S_MAX:.0f} s, for its group waits with it when "
            "it rebalances: a scheduler that runs it --once can do so as rarely as it likes"
        )
    twice = {name for name in wish.partition_by if wish.partition_by.count(name) > 1}
    if twice:
        raise BadWish(f"partitioned by {', '.join(sorted(twice))} more than once")
    return read_source_options(source_options(wish), is_streaming=True)


def read_seconds(text: str) -> float:
    """500ms, 5s, 2m, or a number of seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|)", text.strip())
    if found is None:
        raise BadWish(f"{text!r} is no time: 500ms, 5s and 2m are")
    return float(found[1]) * _UNITS[found[2]]


def read_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """Options that were given as NAME=VALUE."""
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise BadWish(f"{option} {word!r} is no NAME=VALUE")
        if name.strip() in pairs:
            raise BadWish(f"{option} {name.strip()} is given twice")
        pairs[name.strip()] = text.strip()
    return pairs


def read_kafka(
    words: Iterable[str], refused: Mapping[str, str] = _NOT_TO_BE_SAID
) -> dict[str, str]:
    """Options of the consumer, but for those that are refused, and why."""
    pairs = {
        name.removeprefix("kafka."): text for name, text in read_pairs(words, "--kafka").items()
    }
    for name, why in refused.items():
        if name in pairs:
            raise BadWish(f"--kafka {name}: {why}")
    return pairs
