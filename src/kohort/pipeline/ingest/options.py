"""The options of an ingest. Pure: no Spark, no broker, no disk."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.source.options import Reset, SourceOptions, read_source_options
from kohort.settings.readers import BadValue, read_pairs
from kohort.types import value

ROWS_MAX: Final = 1_000_000
"""Default rows per batch: large enough for good Parquet files, small enough for a laptop."""

EVERY_S: Final = 5.0
EVERY_S_MAX: Final = 300.0
"""A member does not rejoin between two batches, so a long interval delays rebalances."""

_OWN_OPTIONS: Final = {
    "bootstrap.servers": "use --bootstrap",
    "group.id": "use --group",
    "group.instance.id": "use --group-instance-id",
    "auto.offset.reset": "use --from",
}


class BadIngestOptions(PipelineError, ValueError):
    """An option that is missing or contradicts another."""


@value
class IngestOptions:
    bootstrap_servers: str
    topics: tuple[str, ...]
    group_id: str
    target: str
    """A directory on a Hadoop file system that the driver and all workers share."""
    schema: str | None = None
    """Schema of JSON values: Spark's DDL, or a StructType in JSON. None keeps records raw."""
    partition_by: tuple[str, ...] = ()
    is_continuous: bool = False
    rows_max: int = ROWS_MAX
    every_s: float = EVERY_S
    """Minimum time from the start of a batch to the start of the next, while there is no lag."""
    instance_id: str | None = None
    reset: Reset = Reset.EARLIEST
    skips_lost: bool = False
    skips_malformed: bool = False
    kafka: Mapping[str, str] = field(default_factory=dict)
    """More consumer options."""


def source_options(options: IngestOptions) -> dict[str, str]:
    """The options of `format("kohort")`."""
    given = {
        "kafka.bootstrap.servers": options.bootstrap_servers,
        "subscribe": ",".join(options.topics),
        "group.id": options.group_id,
        "auto.offset.reset": options.reset.value,
        "includeHeaders": "true",
        "failOnDataLoss": "false" if options.skips_lost else "true",
        "skipMalformedBatches": "true" if options.skips_malformed else "false",
        "maxOffsetsPerTrigger": str(options.rows_max),
        **{f"kafka.{name}": text for name, text in options.kafka.items()},
    }
    if options.instance_id is not None:
        given["group.instance.id"] = options.instance_id
    return given


def check_options(options: IngestOptions) -> SourceOptions:
    """Raise BadIngestOptions or BadSourceOption if options are missing or contradict."""
    for name, given in (
        ("topic", options.topics),
        ("group", options.group_id),
        ("target directory", options.target),
    ):
        if not given or not all(given):
            raise BadIngestOptions(f"the {name} is missing")
    if options.rows_max < 1:
        raise BadIngestOptions("a batch needs at least one row")
    if not 0 <= options.every_s <= EVERY_S_MAX:
        raise BadIngestOptions(
            f"the time between batches is at most {EVERY_S_MAX:.0f} s, because a rebalance waits "
            "for it; for a longer interval, run with --once from a scheduler"
        )
    twice = {name for name in options.partition_by if options.partition_by.count(name) > 1}
    if twice:
        raise BadIngestOptions(f"partition column {', '.join(sorted(twice))} is given twice")
    return read_source_options(source_options(options), is_streaming=True)


def read_consumer_options(
    arguments: Iterable[str], refused: Mapping[str, str] = _OWN_OPTIONS
) -> dict[str, str]:
    """Consumer options given as NAME=VALUE.

    `refused` maps options that have their own command-line option to the hint to print.
    """
    pairs = {
        name.removeprefix("kafka."): text for name, text in read_pairs(arguments, "--kafka").items()
    }
    for name, advice in refused.items():
        if name in pairs:
            raise BadValue(f"--kafka {name}: {advice}")
    return pairs
