"""Tables for people and JSON for machines, both of values that a cluster told.

A table is as wide as what is in it, on a terminal and in a file alike, so that its columns can be
cut by whoever reads it. Nothing in it is obeyed by a terminal: names may hold anything.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import typer

NOTHING: Final = "-"
"""Where there is nothing to show, as in Kafka's own tools."""

_GAP: Final = "  "


def show_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    for line in lay_out(heads, rows):
        typer.echo(line)


def lay_out(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table. Pure."""
    cells = [list(heads), *([cell_of(each) for each in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def cell_of(content: object) -> str:
    """One line, whatever it is."""
    if content is None or content == "":
        return NOTHING
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(content)
    )


def show_json(content: Any) -> None:
    # Escaped to ASCII: a name may hold anything, and a terminal obeys some of it.
    typer.echo(json.dumps(content, indent=2))
