"""The states of a group as a page for people, written from the tables that the machine obeys.

`python -m kohort.coordinator.docs > docs/group-states.md` writes the page anew. Nothing that
decides uses this module.
"""

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeVar

from kohort.coordinator.notes import DEPARTURES, ENDINGS, JOIN_ENDS, TRIGGERS
from kohort.coordinator.outcome import WATCHES
from kohort.coordinator.states import ANSWERS, LEGAL, MEANING, Answer, GroupState
from kohort.types import ErrorCode

Word = TypeVar("Word", bound=StrEnum)

_OPENING: Final = """\
# The states of a group

This page is written by `python -m kohort.coordinator.docs` from the tables in
[states.py](../src/kohort/coordinator/states.py), [outcome.py](../src/kohort/coordinator/outcome.py)
and [notes.py](../src/kohort/coordinator/notes.py); it is not edited by hand. The machine looks its
answers up in the same tables, and `tests/coordinator/test_states.py` asks it every question in
every state."""

_ANSWERS_RULE: Final = """\
What a group answers, as far as its state decides it. A request is first checked for what is wrong
in any state: who speaks, for which generation, with which protocols. A word in capitals is the
error it is refused with; the other words are explained below the table."""

_TIMERS_RULE: Final = """\
Time reaches the machine only as timers that fire. Each has a key, `kind/group/member` as far as
there is a group or a member to it, and setting a key again moves it."""

_STORIES_RULE: Final = """\
Every rebalance is noted when it begins, with its trigger and who pulled it, and when it ends, with
who took part, how long each was waited for, and who is out and why."""


def group_states_markdown() -> str:
    """The whole page."""
    sections = (
        _OPENING,
        _diagram(),
        _meanings("state", MEANING),
        "## How a state is left",
        _table(
            ("from", "to", "because"),
            ((before, after, why) for before, row in LEGAL.items() for after, why in row.items()),
        ),
        "## How each state answers",
        _ANSWERS_RULE,
        _table(
            ("", *GroupState),
            (
                (question, *(_cell(row[state]) for state in GroupState))
                for question, row in ANSWERS.items()
            ),
        ),
        _table(("answer", "what happens"), ((_word(answer), answer.value) for answer in Answer)),
        "## Timers",
        _TIMERS_RULE,
        _meanings("timer", WATCHES),
        "## What is told of a rebalance",
        _STORIES_RULE,
        _meanings("trigger", TRIGGERS),
        _meanings("how the join phase ended", JOIN_ENDS),
        _meanings("how the rebalance ended", ENDINGS),
        _meanings("why a member is out", DEPARTURES),
    )
    return "\n\n".join(sections) + "\n"


def _diagram() -> str:
    """What GitHub draws. Being given up looks the same everywhere, and is left to the table."""
    arrows = [
        f"    {before} --> {after}: {why}"
        for before, row in LEGAL.items()
        for after, why in row.items()
        if after is not GroupState.DEAD or before is GroupState.EMPTY
    ]
    first, last = f"    [*] --> {GroupState.EMPTY}", f"    {GroupState.DEAD} --> [*]"
    return "\n".join(("```mermaid", "stateDiagram-v2", first, *arrows, last, "```"))


def _cell(answer: Answer | ErrorCode) -> str:
    return f"`{answer.name}`" if isinstance(answer, ErrorCode) else _word(answer)


def _word(answer: Answer) -> str:
    return answer.name.lower().replace("_", " ")


def _meanings(title: str, meanings: Mapping[Word, str]) -> str:
    return _table((title, "meaning"), ((f"`{word}`", text) for word, text in meanings.items()))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(group_states_markdown())
