"""Generate a history: the scripts of all groups on one coordinator, in virtual time.

The same options generate the same bytes: all random numbers are seeded, and no clock is read.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kohort.coordinator.config import GroupConfig
from kohort.types import Millis, value
from kohort.virtual_time.rng import RandomStreams
from tools.histories.broker import VirtualBroker
from tools.histories.files import create_empty, write_lines
from tools.histories.group_factory import GroupFactory
from tools.histories.group_script import HistoryContext
from tools.histories.labels import Labels
from tools.histories.log_growth import LogGrowth, cumulative_traffic
from tools.histories.readme import readme_of
from tools.histories.scenarios import choose

BEGIN: Final = Millis(1_767_600_000_000)
"""2026-01-05 08:00 UTC, a Monday morning; constant, so that the bytes are."""

_HOUR_MS: Final = 3_600_000

_END_OFFSETS_INTERVAL_MS: Final = 5 * 60_000

_RETENTION_SHARE: Final = 0.3
"""Offset retention as a share of the history: short enough that offsets expire within it."""

_EXPIRY_CHECKS: Final = 48
"""The number of times in a history that the coordinator looks for expired offsets."""


@value
class HistoryOptions:
    seed: int
    scenarios: tuple[str, ...] = ()
    """Names of scenarios; empty means all."""
    groups: int | None = None
    """The number of groups, which take the scenarios in turn. None: one group per scenario."""
    hours: int = 4
    has_events: bool = True
    partitions: int = 4
    """Of `__consumer_offsets`."""


@value
class HistoryCounts:
    groups: int
    records: int
    """Of `__consumer_offsets`."""
    events: int
    rebalances: int
    pathologies: int
    look_alikes: int


def generate(options: HistoryOptions, to: Path) -> HistoryCounts:
    """Raises UnknownScenario, DirectoryNotEmpty, OSError or StorageError."""
    scenarios = choose(options.scenarios)
    create_empty(to)
    length = options.hours * _HOUR_MS
    end = Millis(BEGIN + length)
    streams = RandomStreams(options.seed)
    config = GroupConfig(
        offsets_retention_ms=Millis(round(length * _RETENTION_SHARE)),
        offsets_retention_check_interval_ms=Millis(length // _EXPIRY_CHECKS),
    )
    broker = VirtualBroker(
        to / "log",
        streams,
        BEGIN,
        config,
        partition_count=options.partitions,
        has_events=options.has_events,
    )
    context = HistoryContext(
        broker=broker, log_growth=LogGrowth(), labels=Labels(), begin=BEGIN, end=end, groups=[]
    )
    for number in range(len(scenarios) if options.groups is None else options.groups):
        scenario = scenarios[number % len(scenarios)]
        factory = GroupFactory(context, scenario.name, number, streams.split("group", number))
        scenario.script(factory)
    broker.run(end)
    for group in context.groups:
        group.oracle.end()
    counts = _count(context)
    broker.close()
    write_lines(to / "ends.jsonl", _end_offsets(context.log_growth, end))
    write_lines(to / "truth.jsonl", context.labels.lines())
    (to / "README.md").write_text(readme_of(options, counts), "utf-8")
    return counts


def _count(context: HistoryContext) -> HistoryCounts:
    labels = context.labels
    return HistoryCounts(
        groups=len(labels.groups),
        records=context.broker.records_written,
        events=context.broker.events,
        rebalances=len(labels.rebalances),
        pathologies=len(labels.pathologies),
        look_alikes=len(labels.look_alikes),
    )


def _end_offsets(log_growth: LogGrowth, end: Millis) -> Iterator[str]:
    for at in range(BEGIN, end + 1, _END_OFFSETS_INTERVAL_MS):
        traffic = cumulative_traffic(at)
        for (topic, partition), growth in log_growth.partitions.items():
            if growth.created_ms <= at:
                line = {
                    "at_ms": at,
                    "topic": topic,
                    "partition": partition,
                    "log_start": growth.start,
                    "log_end": growth.end(traffic),
                }
                yield json.dumps(line, separators=(",", ":"))
