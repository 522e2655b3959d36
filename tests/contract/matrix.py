"""Generates docs/reference/compatibility.md: every behaviour, broker and client library.

    pytest tests/contract/behaviours --matrix docs/reference/compatibility.md

writes it from what the tests have shown; with --collect-only, from what they claim to show. The two
are the same unless a test fails.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.apache.jars import VERSION
from tests.contract.brokers import APACHE, BROKERS
from tests.contract.clients.client_library import ClientLibrary
from tests.contract.expected_results import Claim, find_claim

RAW = "raw requests"
"""The column of behaviours that client libraries cannot request."""

FAILED = Claim(colour="red", reason="The test fails.")

MARKS = {"green": "●", "grey": "○", "red": "✗"}

HEAD = """\
# Compatibility

One contract test suite, many brokers and clients: {rows} behaviours, each tested on three brokers
with every applicable client, {cells} cells in all. This page is generated from the test results by
`pytest tests/contract/behaviours --matrix docs/reference/compatibility.md`; do not edit it by hand.

Each cell has three marks, for the three brokers in this order:
{brokers}.
● works; ○ is not supported by the client; ✗ is not supported by the broker. The number links to the
reason. Unsupported features are tested too: when one starts to work, the test fails until its
marker is removed.

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
"""The order of the themes; each is a test file."""


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
        column=RAW if library is None else _name_of(library),
        broker=broker,
    )


def sentence_of(test_name: str) -> str:
    """The name of a test as a sentence."""
    arguments = test_name.removeprefix("test_").replace("_", " ")
    return (arguments[0].upper() + arguments[1:]).replace(" s ", "'s ")


def _first_sentence(docstring: str | None) -> str:
    assert docstring is not None
    first, _, _ = docstring.strip().partition("\n\n")
    return re.split(r"[.:,]", " ".join(first.split()))[0]


def _name_of(library: object) -> str:
    name = getattr(library, "name", None)
    assert isinstance(name, str)
    return name


class Matrix:
    """Expected and actual results of the cells."""

    def __init__(self, items: Sequence[pytest.Function]) -> None:
        in_order = sorted(items, key=lambda item: ORDER.index(item.path.stem.removeprefix("test_")))
        self._claims = {cell_of(item): find_claim(item) for item in in_order}
        self._results: dict[Cell, Claim] = {}

    def record(self, item: pytest.Function, report: pytest.TestReport) -> None:
        """Record a report of a cell: of its setup, call or teardown."""
        cell = cell_of(item)
        if report.failed:
            self._results[cell] = FAILED
        elif report.when == "call" and (report.passed or hasattr(report, "wasxfail")):
            self._results[cell] = self._claims[cell]

    @property
    def missing(self) -> int:
        """How many cells have no result."""
        return len(self._claims.keys() - self._results.keys())

    def expected_page(self, libraries: Sequence[ClientLibrary]) -> str:
        return render(self._claims, libraries)

    def actual_page(self, libraries: Sequence[ClientLibrary]) -> str:
        return render({cell: self._results[cell] for cell in self._claims}, libraries)


def render(cells: Mapping[Cell, Claim], libraries: Sequence[ClientLibrary]) -> str:
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
    libraries: Sequence[ClientLibrary],
    notes: dict[tuple[str, str], int],
) -> str:
    ours = {cell: claim for cell, claim in cells.items() if cell.theme == theme}
    used = {cell.column for cell in ours}
    columns = [name for name in (*(each.name for each in libraries), RAW) if name in used]
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
