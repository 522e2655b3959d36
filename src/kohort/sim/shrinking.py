"""A failing plan is made smaller for as long as it fails by the same rule.

What may go goes: decisions, members, producers, partitions, time. What stays becomes plain where it
can: good weather, large segments, quick disks. The rest is what the failure needs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from kohort.sim.drawing import CALM
from kohort.sim.plan import Decision, Plan
from kohort.sim.world import World

_RUNS_MAX: Final = 400
"""Protects the patience of whoever waits; every one of them makes the plan smaller or ends it."""

_LUCKS: Final = 5
"""A failure that needs luck may need other luck at another time."""

_PLAIN: Final[dict[str, Any]] = {
    "weather": CALM,
    "segment_bytes": 0,
    "offsets_partitions": 1,
    "initial_delay_ms": 0,
    "housekeeping_ms": 10_000,
    "idle_ms": 600_000,
    "sync_ms": (0.1, 1),
    "last_victim": "",
}


def shrink(plan: Plan, rule: str, runs_max: int = _RUNS_MAX) -> Plan:
    """The smallest plan found that still breaks the rule."""
    shrinking = _Shrinking(plan, rule, runs_max)
    size = -1
    while size != _size(shrinking.plan) and not shrinking.is_tired:
        size = _size(shrinking.plan)
        shrinking.drop_decisions()
        for candidates in (
            _fewer_people,
            _fewer_partitions,
            _earlier,
            _shorter,
            _plainer,
            _milder,
        ):
            shrinking.try_all(candidates)
    return shrinking.plan


def _size(plan: Plan) -> int:
    """Anything that a step may take away."""
    plain = sum(bool(getattr(plan, name) == value) for name, value in _PLAIN.items())
    return (
        1000 * len(plan.decisions)
        + 500 * (len(plan.members) + len(plan.producers))
        + 100 * (sum(plan.topics) + len(plan.topics))
        + len(_PLAIN)
        - plain
        + sum(decision.operations + decision.amount for decision in plan.decisions)
        + plan.faulty_ms
    )


class _Shrinking:
    def __init__(self, plan: Plan, rule: str, runs_max: int) -> None:
        self.plan = plan
        self._rule = rule
        self._runs_left = runs_max

    @property
    def is_tired(self) -> bool:
        return self._runs_left <= 0

    def attempt(self, candidate: Plan) -> bool:
        """Take this plan for the present one, if it fails as well."""
        if self.is_tired or not candidate.members or not candidate.producers:
            return False
        self._runs_left -= 1
        if World(candidate).run().rule != self._rule:
            return False
        self.plan = candidate
        return True

    def try_all(self, candidates: Callable[[Plan], Iterator[Plan]]) -> None:
        """Each candidate is made from what has become of the plan by then."""
        is_smaller = True
        while is_smaller and not self.is_tired:
            size = _size(self.plan)
            is_smaller = any(
                _size(each) < size and self.attempt(each) for each in candidates(self.plan)
            )

    def drop_decisions(self) -> None:
        """Half of them at once, then a quarter, down to one by one."""
        width = len(self.plan.decisions)
        while width and not self.is_tired:
            at = 0
            while at < len(self.plan.decisions) and not self.is_tired:
                kept = self.plan.decisions[:at] + self.plan.decisions[at + width :]
                if not self.attempt(replace(self.plan, decisions=kept)):
                    at += width
            width //= 2


def _fewer_people(plan: Plan) -> Iterator[Plan]:
    for gone in plan.members:
        yield replace(
            plan,
            members=tuple(each for each in plan.members if each is not gone),
            decisions=_without(plan.decisions, gone.name),
        )
    for producer in plan.producers:
        yield replace(
            plan,
            producers=tuple(each for each in plan.producers if each is not producer),
            decisions=_without(plan.decisions, producer.name),
        )


def _fewer_partitions(plan: Plan) -> Iterator[Plan]:
    if len(plan.topics) > 1:
        last = f"t{len(plan.topics) - 1}"
        yield replace(plan, topics=plan.topics[:-1], decisions=_without(plan.decisions, last))
    for index, count in enumerate(plan.topics):
        if count > 1:
            yield replace(plan, topics=(*plan.topics[:index], count - 1, *plan.topics[index + 1 :]))


def _shorter(plan: Plan) -> Iterator[Plan]:
    last = max((decision.at_ms for decision in plan.decisions), default=0)
    for faulty_ms in (last + 200, plan.faulty_ms // 2, plan.faulty_ms * 3 // 4):
        if last < faulty_ms < plan.faulty_ms:
            yield replace(plan, faulty_ms=faulty_ms)


def _earlier(plan: Plan) -> Iterator[Plan]:
    """The same things in half the time: what needs much to have happened before will not fail."""
    decisions = tuple(replace(each, at_ms=each.at_ms // 2) for each in plan.decisions)
    earlier = replace(plan, decisions=decisions, faulty_ms=max(plan.faulty_ms // 2, 100))
    for luck in range(_LUCKS):
        yield replace(earlier, seed=plan.seed + luck)


def _plainer(plan: Plan) -> Iterator[Plan]:
    for name, plain in _PLAIN.items():
        yield replace(plan, **{name: plain})


def _milder(plan: Plan) -> Iterator[Plan]:
    for index, decision in enumerate(plan.decisions):
        for milder in (replace(decision, operations=0), replace(decision, amount=0)):
            decisions = (*plan.decisions[:index], milder, *plan.decisions[index + 1 :])
            yield replace(plan, decisions=decisions)


def _without(decisions: tuple[Decision, ...], target: str) -> tuple[Decision, ...]:
    return tuple(decision for decision in decisions if decision.target != target)
