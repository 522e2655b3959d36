"""docs/reference/group-states.md is up to date, and its source tables are complete."""

import re
import subprocess
import sys

from kohort.coordinator.events import (
    DEPARTURES,
    JOIN_ENDS,
    REBALANCE_RESULTS,
    TRIGGERS,
    Departure,
    JoinEnd,
    RebalanceResult,
    Trigger,
)
from kohort.coordinator.groups.classic.states import ACTIONS, LEGAL, MEANING, GroupState
from kohort.coordinator.outcome import TIMER_PURPOSES, TimerKind
from tests.tidy.repository import read
from tools.docgen.group_states_page import group_states_markdown

REFRESH = "python -m tools.docgen.group_states_page > docs/reference/group-states.md"


def test_generated_page_is_up_to_date() -> None:
    is_fresh = read("docs/reference/group-states.md") == group_states_markdown()

    assert is_fresh, f"docs/reference/group-states.md is out of date; refresh it with: {REFRESH}"


def test_running_the_module_prints_the_page() -> None:
    command = [sys.executable, "-m", "tools.docgen.group_states_page"]

    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    assert printed == group_states_markdown()


def test_every_enum_value_has_a_meaning() -> None:
    assert list(MEANING) == list(GroupState)
    assert list(TIMER_PURPOSES) == list(TimerKind)
    assert list(TRIGGERS) == list(Trigger)
    assert list(DEPARTURES) == list(Departure)
    assert list(JOIN_ENDS) == list(JoinEnd)
    assert list(REBALANCE_RESULTS) == list(RebalanceResult)


def test_diagram_shows_every_transition_except_most_to_dead() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+): (.+)$", group_states_markdown(), re.MULTILINE)

    given_up = [(b, a, why) for b, row in LEGAL.items() for a, why in row.items() if a == "Dead"]
    everything = [(b, a, why) for b, row in LEGAL.items() for a, why in row.items()]
    assert set(everything) - set(drawn) == set(given_up[1:])


def test_page_has_a_row_for_every_request() -> None:
    page = group_states_markdown()

    assert [question for question in ACTIONS if f"\n| {question} | " not in page] == []
