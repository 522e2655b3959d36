"""SQL expressions that format numbers and durations exactly as kohort.text.numbers does."""

from string import Formatter
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

_UNKNOWN: Final = "unknown"


def format_text(template: str) -> Column:
    """A template with columns in braces and an optional format after a colon.

    `{subject}` is the value; `{span_ms:duration}` is 3 min 20 s; `{lag:number}` is 1,204; any other
    format is a noun: `{count:rebalance}` is 1 rebalance or 7 rebalances.
    """
    parts = []
    for text, name, form, _ in Formatter().parse(template):
        if text:
            parts.append(sql.lit(text))
        if name is not None:
            parts.append(sql.expr(f"coalesce({_formatted(name, form or '')}, '{_UNKNOWN}')"))
    return sql.concat(*parts)


def _formatted(name: str, form: str) -> str:
    match form:
        case "":
            return f"string({name})"
        case "duration":
            return duration(name)
        case "number":
            return number(name)
        case noun:
            return count(name, noun)


def number(expression: str) -> str:
    """SQL: 1,204, or 0.5."""
    return f"format_number({expression}, '#,##0.#')"


def count(expression: str, noun: str) -> str:
    """SQL: 1 record, 1,204 records."""
    plural = f"CASE WHEN {expression} = 1 THEN ' {noun}' ELSE ' {noun}s' END"
    return f"concat({number(expression)}, {plural})"


def duration(ms: str) -> str:
    """SQL: at most two units, without zeros: 850 ms, 4.2 s, 3 min 20 s, 2 d 4 h.

    The bounds are where the smaller unit would be rounded up to one of the larger.
    """
    return (
        f"CASE WHEN {ms} < 1000 THEN concat({ms}, ' ms') "
        f"WHEN {ms} < 59950 THEN concat({number(f'{ms} / 1000')}, ' s') "
        f"WHEN {ms} < 3599500 THEN {_in_two(ms, 1_000, 60, 'min', 's')} "
        f"WHEN {ms} < 86370000 THEN {_in_two(ms, 60_000, 60, 'h', 'min')} "
        f"ELSE {_in_two(ms, 3_600_000, 24, 'd', 'h')} END"
    )


def _in_two(ms: str, unit_ms: int, per: int, large: str, small: str) -> str:
    # Halves are rounded to even, as in Python.
    units = f"bigint(bround({ms} / {unit_ms}))"
    rest = f"{units} % {per}"
    return (
        f"concat({number(f'{units} div {per}')}, ' {large}', "
        f"CASE WHEN {rest} > 0 THEN concat(' ', {rest}, ' {small}') ELSE '' END)"
    )
