"""The page about group states is what the tables say, and the tables leave no word unexplained."""

import re
import subprocess
import sys

from kohort.coordinator.docs import group_states_markdown
from kohort.coordinator.notes import (
    DEPARTURES,
    ENDINGS,
    JOIN_ENDS,
    TRIGGERS,
    Departure,
    Ending,
    JoinEnd,
    Trigger,
)
from kohort.coordinator.outcome import WATCHES, TimerKind
from kohort.coordinator.states import ANSWERS, LEGAL, MEANING, GroupState
from tests.tidy.repository import read

REFRESH = "python -m kohort.coordinator.docs > docs/group-states.md"


def test_the_page_is_what_the_tables_say() -> None:
    is_fresh = read("docs/group-states.md") == group_states_markdown()

    assert is_fresh, f"docs/group-states.md is out of date; refresh it with: {REFRESH}"


def test_the_module_prints_the_page_when_it_is_run() -> None:
    command = [sys.executable, "-m", "kohort.coordinator.docs"]

    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    assert printed == group_states_markdown()


def test_every_word_of_the_vocabulary_is_explained() -> None:
    assert list(MEANING) == list(GroupState)
    assert list(WATCHES) == list(TimerKind)
    assert list(TRIGGERS) == list(Trigger)
    assert list(DEPARTURES) == list(Departure)
    assert list(JOIN_ENDS) == list(JoinEnd)
    assert list(ENDINGS) == list(Ending)


def test_the_diagram_shows_every_change_but_being_given_up() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+): (.+)$", group_states_markdown(), re.MULTILINE)

    given_up = [(b, a, why) for b, row in LEGAL.items() for a, why in row.items() if a == "Dead"]
    everything = [(b, a, why) for b, row in LEGAL.items() for a, why in row.items()]
    assert set(everything) - set(drawn) == set(given_up[1:])


def test_the_page_has_a_row_for_every_question() -> None:
    page = group_states_markdown()

    assert [question for question in ANSWERS if f"\n| {question} | " not in page] == []
