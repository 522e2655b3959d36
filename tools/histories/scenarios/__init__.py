"""All scenarios by name. Each group of a history plays one scenario."""

from collections.abc import Mapping, Sequence
from typing import Final

from kohort.settings.readers import did_you_mean
from tools.histories.scenarios import lookalikes, membership, offsets, ordinary, rare
from tools.histories.scenarios.scenario import Category, Scenario

SCENARIOS: Final[Mapping[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        *ordinary.SCENARIOS,
        ordinary.BUSY,
        *membership.SCENARIOS,
        *offsets.SCENARIOS,
        *lookalikes.SCENARIOS,
        *rare.SCENARIOS,
    )
}


class UnknownScenario(ValueError):
    """No scenario has that name."""


def choose(names: Sequence[str]) -> tuple[Scenario, ...]:
    """Return the named scenarios; without names, all except those that exist for their size."""
    if not names:
        return tuple(each for each in SCENARIOS.values() if not each.is_for_size)
    for name in names:
        if name not in SCENARIOS:
            raise UnknownScenario(f"unknown scenario {name!r}{did_you_mean(name, SCENARIOS)}")
    return tuple(SCENARIOS[name] for name in names)


__all__ = ["SCENARIOS", "Category", "Scenario", "UnknownScenario", "choose"]
