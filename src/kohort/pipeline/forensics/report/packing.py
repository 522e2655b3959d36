"""A group's story in few bytes, for the page's own script: names once, rows without names. Pure.

Times are milliseconds since the report's beginning. A program is its number in `names`.
"""

from dataclasses import fields
from itertools import groupby
from typing import Any, Final

from kohort.pipeline.forensics.report.material import Party, Rebalance, Stretch
from kohort.pipeline.forensics.report.model import Story
from kohort.pipeline.forensics.report.twin import plain

_MOMENTS: Final = {"from_ms", "to_ms", "started_ms", "ended_ms", "since_ms", "at_ms"}


def pack(story: Story, since_ms: int) -> dict[str, Any]:
    names = _Names(story)
    rows = {place: number for number, place in enumerate(story.places)}
    return {
        "id": story.group_id,
        "about": story.about,
        "answers": plain(story.answers),
        "knowledge": story.knowledge,
        "shown_from": story.shown_from_ms - since_ms,
        "left_out": list(story.left_out),
        "findings": [
            # Evidence is for programs, and may be long.
            {k: v for k, v in _moved(plain(each), since_ms).items() if k != "evidence"}
            for each in story.findings
        ],
        "rebalances": _table([_rebalance(each, names, since_ms) for each in story.rebalances]),
        "programs": [
            {
                "name": names.number(each.name),
                "began": each.began,
                "lives": _table([_moved(plain(life), since_ms) for life in each.lives]),
            }
            for each in story.programs
        ],
        "places": [f"{topic}-{number}" for topic, number in story.places],
        "stretches": [
            [
                names.owner(each),
                each.from_ms - since_ms,
                None if each.to_ms is None else each.to_ms - since_ms,
                each.gap_before_ms,
                _runs(sorted(rows[place] for place in each.places)),
            ]
            for each in story.stretches
        ],
        "absences": [_moved(plain(each), since_ms) for each in story.absences],
        "lag": [
            [each.at_ms - since_ms, each.records, each.seconds and round(each.seconds, 1)]
            for each in story.lag
        ],
        "laggards": _table(
            [
                _moved(plain(each), since_ms) | {"owner": names.member(each.owner)}
                for each in story.laggards
            ]
        ),
        # Last, since whoever is named above is in it.
        "names": names.all,
    }


class _Names:
    """Programs by number: those with lives first, in the order of the story."""

    def __init__(self, story: Story) -> None:
        self.all = [each.name for each in story.programs]
        self._numbers = {name: number for number, name in enumerate(self.all)}
        self._members = {
            life.member_id: each.name for each in story.programs for life in each.lives
        }

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.all)
            self.all.append(name)
        return self._numbers[name]

    def party(self, party: Party | None) -> int | None:
        return None if party is None else self.number(party.who)

    def member(self, member_id: str | None) -> str | None:
        """By its program's name, if that is known."""
        return None if member_id is None else self._members.get(member_id, member_id)

    def owner(self, stretch: Stretch) -> int:
        """An owner's host is not told with its ownership, so it is asked for by its member id."""
        name = self._members.get(stretch.member_id)
        return self.number(name or stretch.instance_id or stretch.client_id or stretch.member_id)


def _rebalance(each: Rebalance, names: _Names, since_ms: int) -> dict[str, Any]:
    row = {field.name: getattr(each, field.name) for field in fields(each)}
    row |= {name: names.party(row[name]) for name in ("culprit", "slowest")}
    row |= {name: [names.party(party) for party in row[name]] for name in ("joined", "departed")}
    row["confidence"] = None if each.confidence is None else round(each.confidence, 2)
    return _moved(row, since_ms)


def _moved(row: dict[str, Any], since_ms: int) -> dict[str, Any]:
    return {
        name: each - since_ms if name in _MOMENTS and each is not None else each
        for name, each in row.items()
    }


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "columns": list(rows[0]) if rows else [],
        "rows": [list(each.values()) for each in rows],
    }


def _runs(numbers: list[int]) -> list[int]:
    """Neighbours as a first one and how many: 3 4 5 9 is 3 3 9 1."""
    runs: list[int] = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        runs += [members[0], len(members)]
    return runs
