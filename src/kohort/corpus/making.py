"""Makes a corpus: every group's script on one coordinator, in one stretch of virtual time.

The same plan gives the same bytes: all chance is seeded, and no clock is read.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kohort.coordinator.limits import Limits
from kohort.corpus.casting import Casting
from kohort.corpus.dice import Dice
from kohort.corpus.feed import Feed, progress
from kohort.corpus.files import claim, write_lines
from kohort.corpus.fleet import World
from kohort.corpus.house import House
from kohort.corpus.kinds import choose
from kohort.corpus.readme import page_of
from kohort.corpus.truth import Truth
from kohort.types import Millis, value

BEGIN: Final = Millis(1_767_600_000_000)
"""2026-01-05 08:00 UTC, a Monday morning: always the same, so that the bytes are."""

_HOUR_MS: Final = 3_600_000

_LOOK_MS: Final = 5 * 60_000
"""How often the logs' ends are looked at."""

_RETENTION_SHARE: Final = 0.3
"""Of the history: so long are offsets kept, or a short history could not show them expire."""

_EXPIRY_LOOKS: Final = 48
"""How often in a history the coordinator looks for what has expired."""


@value
class Plan:
    seed: int
    kinds: tuple[str, ...] = ()
    """Names of kinds; none stands for one group of every kind."""
    groups: int | None = None
    """How many; the kinds take turns. None stands for one of each."""
    hours: int = 4
    has_events: bool = True
    partitions: int = 4
    """Of `__consumer_offsets`."""


@value
class Made:
    """What there is now."""

    groups: int
    records: int
    """Of `__consumer_offsets`."""
    events: int
    rebalances: int
    pathologies: int
    look_alikes: int


def make(plan: Plan, to: Path) -> Made:
    """Raises UnknownKind, Occupied, or an OSError or StorageError if it cannot be written."""
    kinds = choose(plan.kinds)
    claim(to)
    length = plan.hours * _HOUR_MS
    end = Millis(BEGIN + length)
    dice = Dice(plan.seed)
    limits = Limits(
        offsets_retention_ms=Millis(round(length * _RETENTION_SHARE)),
        offsets_retention_check_interval_ms=Millis(length // _EXPIRY_LOOKS),
    )
    house = House(
        to / "log",
        dice,
        BEGIN,
        limits,
        partition_count=plan.partitions,
        has_events=plan.has_events,
    )
    world = World(house=house, feed=Feed(), truth=Truth(), begin=BEGIN, end=end, everyone=[])
    for number in range(len(kinds) if plan.groups is None else plan.groups):
        kind = kinds[number % len(kinds)]
        kind.play(Casting(world, kind.name, number, dice.split("group", number)))
    house.run(end)
    for fleet in world.everyone:
        fleet.witness.end()
    made = _count(world)
    house.close()
    write_lines(to / "ends.jsonl", _ends(world.feed, end))
    write_lines(to / "truth.jsonl", world.truth.lines())
    (to / "README.md").write_text(page_of(plan, made), "utf-8")
    return made


def _count(world: World) -> Made:
    truth = world.truth
    return Made(
        groups=len(truth.groups),
        records=world.house.kept,
        events=world.house.events,
        rebalances=len(truth.rebalances),
        pathologies=len(truth.pathologies),
        look_alikes=len(truth.look_alikes),
    )


def _ends(feed: Feed, end: Millis) -> Iterator[str]:
    for at in range(BEGIN, end + 1, _LOOK_MS):
        progressed = progress(at)
        for (topic, partition), flow in feed.flows.items():
            if flow.born_ms <= at:
                look = {
                    "at_ms": at,
                    "topic": topic,
                    "partition": partition,
                    "log_start": flow.start,
                    "log_end": flow.end(progressed),
                }
                yield json.dumps(look, separators=(",", ":"))
