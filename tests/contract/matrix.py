"""docs/compatibility.md: every behaviour on every broker with every library, and why some lack it.

    pytest tests/contract/behaviours --matrix docs/compatibility.md

writes it from what the tests have shown; with --collect-only, from what they claim to show. The two
are the same unless a test fails.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.apache.jars import VERSION
from tests.contract.brokers import APACHE, BROKERS
from tests.contract.claims import Claim, find_claim
from tests.contract.clients.library import Library

BARE = "bare requests"
"""The column of what no library lets one ask."""

FAILED = Claim(colour="red", reason="The test fails.")

MARKS = {"green": "●", "grey": "○", "red": "✗"}

HEAD = """\
# Compatibility

One contract, many brokers and clients: {rows} behaviours, each tried on three brokers with every
client that can show it, {cells} cells in all. This page is written by
`pytest tests/contract/behaviours --matrix docs/compatibility.md` from what those tests have shown;
it is not edited by hand.

Each cell has three marks, for the three brokers in this order:
{brokers}.
● works; ○ is missing in the client, ✗ in the broker, and the number leads to the reason. What is
missing is tried as well: when it starts to work the tests fail, until its mark is taken away.

The clients:

{versions}
"""

ORDER = (
    "membership",
    "assignors",
    "static",
    "subscriptions",
    "commits",
    "states",
    "positions",
    "expiry",
    "group_administration",
    "records",
    "logs",
    "topic_administration",
    "beyond",
)
"""The themes, each a file of tests, as they are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    theme: str
    behaviour: str
    column: str
    broker: str


def cell_of(item: pytest.Function) -> Cell:
    params = dict(item.callspec.params)
    library = params.pop("library", None)
    broker = params.pop("cluster")
    assert isinstance(broker, str)
    details = "".join(f" ({name}: {given})" for name, given in params.items())
    return Cell(
        theme=_first_sentence(item.module.__doc__),
        behaviour=sentence_of(item.originalname) + details,
        column=BARE if library is None else _name_of(library),
        broker=broker,
    )


def sentence_of(test_name: str) -> str:
    """A test's name as the sentence it is."""
    words = test_name.removeprefix("test_").replace("_", " ")
    return (words[0].upper() + words[1:]).replace(" s ", "'s ")


def _first_sentence(docstring: str | None) -> str:
    assert docstring is not None
    first, _, _ = docstring.strip().partition("\n\n")
    return re.split(r"[.:,]", " ".join(first.split()))[0]


def _name_of(library: object) -> str:
    name = getattr(library, "name", None)
    assert isinstance(name, str)
    return name


class Matrix:
    """What is claimed about cells, and what was shown."""

    def __init__(self, items: Sequence[pytest.Function]) -> None:
        in_order = sorted(items, key=lambda item: ORDER.index(item.path.stem.removeprefix("test_")))
        self._claims = {cell_of(item): find_claim(item) for item in in_order}
        self._shown: dict[Cell, Claim] = {}

    def note(self, item: pytest.Function, report: pytest.TestReport) -> None:
        """One of the reports about a cell: of its start, its call or its end."""
        cell = cell_of(item)
        if report.failed:
            self._shown[cell] = FAILED
        elif report.when == "call" and (report.passed or hasattr(report, "wasxfail")):
            self._shown[cell] = self._claims[cell]

    @property
    def missing(self) -> int:
        """How many cells have not been shown."""
        return len(self._claims.keys() - self._shown.keys())

    def page_as_claimed(self, libraries: Sequence[Library]) -> str:
        return render(self._claims, libraries)

    def page_as_shown(self, libraries: Sequence[Library]) -> str:
        return render({cell: self._shown[cell] for cell in self._claims}, libraries)


def render(cells: Mapping[Cell, Claim], libraries: Sequence[Library]) -> str:
    notes: dict[tuple[str, str], int] = {}
    themes = list(dict.fromkeys(cell.theme for cell in cells))
    tables = [_table(theme, cells, libraries, notes) for theme in themes]
    rows = {(cell.theme, cell.behaviour) for cell in cells}
    versions = [f"- {library.name}, {library.version}" for library in libraries]
    brokers = [*BROKERS[:-1], f"{APACHE} {VERSION}"]
    head = HEAD.format(
        rows=len(rows),
        cells=len(cells),
        brokers=f"{', '.join(brokers[:-1])} and {brokers[-1]}",
        versions="\n".join(versions),
    )
    reasons = [f"{number}. **{who}**: {why}" for (who, why), number in notes.items()]
    return "\n".join([head, *tables, "## Reasons\n", *reasons, ""])


def _table(
    theme: str,
    cells: Mapping[Cell, Claim],
    libraries: Sequence[Library],
    notes: dict[tuple[str, str], int],
) -> str:
    ours = {cell: claim for cell, claim in cells.items() if cell.theme == theme}
    used = {cell.column for cell in ours}
    columns = [name for name in (*(each.name for each in libraries), BARE) if name in used]
    lines = [
        f"## {theme}\n",
        f"| | {' | '.join(columns)} |",
        f"| --- |{' :---: |' * len(columns)}",
    ]
    for behaviour in dict.fromkeys(cell.behaviour for cell in ours):
        found = [_mark(ours, theme, behaviour, column, notes) for column in columns]
        lines.append(f"| {behaviour} | {' | '.join(found)} |")
    return "\n".join([*lines, ""])


def _mark(
    cells: Mapping[Cell, Claim],
    theme: str,
    behaviour: str,
    column: str,
    notes: dict[tuple[str, str], int],
) -> str:
    marks, numbers = "", []
    for broker in BROKERS:
        cell = Cell(theme=theme, behaviour=behaviour, column=column, broker=broker)
        claim = cells.get(cell)
        if claim is None:
            return ""
        marks += MARKS[claim.colour]
        if claim.reason:
            who = column if claim.colour == "grey" else broker.split(" in ")[0].split(" served")[0]
            numbers.append(notes.setdefault((who, claim.reason), len(notes) + 1))
    return " ".join([marks, *(f"[{number}](#reasons)" for number in dict.fromkeys(numbers))])
