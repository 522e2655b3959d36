"""Shrinks a failing plan while it breaks the same rule.

It removes events, members, producers, partitions and time, and replaces special settings by plain
ones: a calm network, large segments, fast disks.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from kohort.sim.plan import PlannedEvent, SimulationPlan
from kohort.sim.plan_generator import CALM
from kohort.sim.world import World

_RUNS_MAX: Final = 400
"""Bounds the time of shrinking."""

_SEEDS_PER_STEP: Final = 5
"""Other timing may need another seed to fail."""

_PLAIN: Final[dict[str, Any]] = {
    "conditions": CALM,
    "segment_bytes": 0,
    "offsets_partitions": 1,
    "initial_delay_ms": 0,
    "housekeeping_ms": 10_000,
    "idle_ms": 600_000,
    "sync_ms": (0.1, 1),
    "last_victim": "",
}


def shrink(plan: SimulationPlan, rule: str, runs_max: int = _RUNS_MAX) -> SimulationPlan:
    """The smallest plan found that breaks the rule."""
    shrinker = _Shrinker(plan, rule, runs_max)
    size = -1
    while size != _size(shrinker.plan) and not shrinker.is_exhausted:
        size = _size(shrinker.plan)
        shrinker.drop_events()
        for candidates in (
            _fewer_clients,
            _fewer_partitions,
            _earlier,
            _shorter,
            _plainer,
            _milder,
        ):
            shrinker.try_all(candidates)
    return shrinker.plan


def _size(plan: SimulationPlan) -> int:
    """Decreases with each step."""
    plain = sum(bool(getattr(plan, name) == value) for name, value in _PLAIN.items())
    return (
        1000 * len(plan.events)
        + 500 * (len(plan.members) + len(plan.producers))
        + 100 * (sum(plan.topics) + len(plan.topics))
        + len(_PLAIN)
        - plain
        + sum(event.operations + event.amount for event in plan.events)
        + plan.faulty_ms
    )


class _Shrinker:
    def __init__(self, plan: SimulationPlan, rule: str, runs_max: int) -> None:
        self.plan = plan
        self._rule = rule
        self._runs_left = runs_max

    @property
    def is_exhausted(self) -> bool:
        return self._runs_left <= 0

    def attempt(self, candidate: SimulationPlan) -> bool:
        """Keep this plan if it breaks the rule too."""
        if self.is_exhausted or not candidate.members or not candidate.producers:
            return False
        self._runs_left -= 1
        if World(candidate).run().rule != self._rule:
            return False
        self.plan = candidate
        return True

    def try_all(self, candidates: Callable[[SimulationPlan], Iterator[SimulationPlan]]) -> None:
        """Repeat until no candidate of the current plan is smaller."""
        is_smaller = True
        while is_smaller and not self.is_exhausted:
            size = _size(self.plan)
            is_smaller = any(
                _size(each) < size and self.attempt(each) for each in candidates(self.plan)
            )

    def drop_events(self) -> None:
        """Remove half of the events at once, then a quarter, down to single ones."""
        width = len(self.plan.events)
        while width and not self.is_exhausted:
            at = 0
            while at < len(self.plan.events) and not self.is_exhausted:
                kept = self.plan.events[:at] + self.plan.events[at + width :]
                if not self.attempt(replace(self.plan, events=kept)):
                    at += width
            width //= 2


def _fewer_clients(plan: SimulationPlan) -> Iterator[SimulationPlan]:
    for gone in plan.members:
        yield replace(
            plan,
            members=tuple(each for each in plan.members if each is not gone),
            events=_without(plan.events, gone.name),
        )
    for producer in plan.producers:
        yield replace(
            plan,
            producers=tuple(each for each in plan.producers if each is not producer),
            events=_without(plan.events, producer.name),
        )


def _fewer_partitions(plan: SimulationPlan) -> Iterator[SimulationPlan]:
    if len(plan.topics) > 1:
        last = f"t{len(plan.topics) - 1}"
        yield replace(plan, topics=plan.topics[:-1], events=_without(plan.events, last))
    for index, count in enumerate(plan.topics):
        if count > 1:
            yield replace(plan, topics=(*plan.topics[:index], count - 1, *plan.topics[index + 1 :]))


def _shorter(plan: SimulationPlan) -> Iterator[SimulationPlan]:
    last = max((event.at_ms for event in plan.events), default=0)
    for faulty_ms in (last + 200, plan.faulty_ms // 2, plan.faulty_ms * 3 // 4):
        if last < faulty_ms < plan.faulty_ms:
            yield replace(plan, faulty_ms=faulty_ms)


def _earlier(plan: SimulationPlan) -> Iterator[SimulationPlan]:
    """The same events in half the time."""
    events = tuple(replace(each, at_ms=each.at_ms // 2) for each in plan.events)
    earlier = replace(plan, events=events, faulty_ms=max(plan.faulty_ms // 2, 100))
    for luck in range(_SEEDS_PER_STEP):
        yield replace(earlier, seed=plan.seed + luck)


def _plainer(plan: SimulationPlan) -> Iterator[SimulationPlan]:
    for name, plain in _PLAIN.items():
        yield replace(plan, **{name: plain})


def _milder(plan: SimulationPlan) -> Iterator[SimulationPlan]:
    for index, event in enumerate(plan.events):
        for milder in (replace(event, operations=0), replace(event, amount=0)):
            events = (*plan.events[:index], milder, *plan.events[index + 1 :])
            yield replace(plan, events=events)


def _without(events: tuple[PlannedEvent, ...], target: str) -> tuple[PlannedEvent, ...]:
    return tuple(event for event in events if event.target != target)
