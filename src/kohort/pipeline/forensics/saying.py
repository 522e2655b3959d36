"""Figures in sentences, as people say them, made by Spark for each row of a table.

The same words as the report's own (`report.words`), in SQL: what a sentence says of a time or a
number, nobody has to read and say again.
"""

from string import Formatter
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

_UNKNOWN: Final = "unknown"


def say(words: str) -> Column:
    """Words with the figures of a row in braces, and behind a colon what they are.

    `{subject}` stays as it is; `{span_ms:duration}` is 3 min 20 s; `{lag:number}` is 1,204; and
    with any other word it is so many of that: `{count:rebalance}` is 1 rebalance or 7 rebalances.
    """
    parts = []
    for text, name, form, _ in Formatter().parse(words):
        if text:
            parts.append(sql.lit(text))
        if name is not None:
            parts.append(sql.expr(f"coalesce({_figure(name, form or '')}, '{_UNKNOWN}')"))
    return sql.concat(*parts)


def _figure(name: str, form: str) -> str:
    match form:
        case "":
            return f"string({name})"
        case "duration":
            return duration(name)
        case "number":
            return number(name)
        case noun:
            return count(name, noun)


def number(figure: str) -> str:
    """SQL: 1,204, or 0.5."""
    return f"format_number({figure}, '#,##0.#')"


def count(figure: str, noun: str) -> str:
    """SQL: 1 record, 1,204 records."""
    return f"concat({number(figure)}, CASE WHEN {figure} = 1 THEN ' {noun}' ELSE ' {noun}s' END)"


def duration(ms: str) -> str:
    """SQL: two units at the most, and none that says nothing: 850 ms, 4.2 s, 3 min 20 s, 2 d 4 h.

    Bounds lie where the smaller unit would be rounded up to a whole of the larger.
    """
    return (
        f"CASE WHEN {ms} < 1000 THEN concat({ms}, ' ms') "
        f"WHEN {ms} < 59950 THEN concat({number(f'{ms} / 1000')}, ' s') "
        f"WHEN {ms} < 3599500 THEN {_in_two(ms, 1_000, 60, 'min', 's')} "
        f"WHEN {ms} < 86370000 THEN {_in_two(ms, 60_000, 60, 'h', 'min')} "
        f"ELSE {_in_two(ms, 3_600_000, 24, 'd', 'h')} END"
    )


def _in_two(ms: str, unit_ms: int, per: int, large: str, small: str) -> str:
    # Halves go to the even neighbour, as in Python.
    units = f"bigint(bround({ms} / {unit_ms}))"
    rest = f"{units} % {per}"
    return (
        f"concat({number(f'{units} div {per}')}, ' {large}', "
        f"CASE WHEN {rest} > 0 THEN concat(' ', {rest}, ' {small}') ELSE '' END)"
    )
