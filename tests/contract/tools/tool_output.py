"""Parses the output of the tools: tables, and lines of name=value."""

import re

Row = dict[str, str]

_HEADS = ("GROUP ", "TOPIC ")


def read_tables(text: str) -> list[Row]:
    """Every row of every table, by column name."""
    rows: list[Row] = []
    starts: list[tuple[str, int]] = []
    for line in text.splitlines():
        if line.startswith(_HEADS):
            found = re.finditer(r"\S+(?: \(ID\))?", line)
            starts = [(column.group(), column.start()) for column in found]
        elif starts and line.strip():
            ends = [start for _, start in starts[1:]] + [len(line)]
            rows.append(
                {
                    name: line[start:end].strip()
                    for (name, start), end in zip(starts, ends, strict=True)
                }
            )
    return rows


def read_pairs(line: str) -> Row:
    """`Topic: a	Partition: 0` as kafka-topics prints it."""
    parts = (part.partition(": ") for part in line.strip().split("\t"))
    return {name.rstrip(":"): content.strip() for name, _, content in parts}
