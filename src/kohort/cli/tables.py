"""Prints tables for people and JSON for programs.

A column is as wide as its widest cell, on a terminal and in a file. Control characters are escaped,
because names from a cluster may contain any character.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import typer

EMPTY_CELL: Final = "-"
"""The same as in Kafka's own tools."""

_GAP: Final = "  "


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    for line in format_table(heads, rows):
        typer.echo(line)


def format_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    cells = [list(heads), *([format_cell(each) for each in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def format_cell(content: object) -> str:
    """Return one line without control characters."""
    if content is None or content == "":
        return EMPTY_CELL
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(content)
    )


def print_json(content: Any) -> None:
    # ASCII only: names may contain control characters that a terminal interprets.
    typer.echo(json.dumps(content, indent=2))
