"""The findings of forensics, read from their table without a Spark: for pages that show them.

It reads local directories only, by Arrow, and changes nothing.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from kohort.pipeline.errors import PipelineError
from kohort.types import value

_COMPLETE: Final = "_complete.json"
_TABLE: Final = "gold/findings"
_COLUMNS: Final = (
    "group_id",
    "finding",
    "severity",
    "subject",
    "from_at",
    "to_at",
    "count",
    "what",
    "advice",
    "setting",
    "would_have_saved_ms",
)
_RANKS: Final = {"critical": 0, "warning": 1, "notice": 2}


class NoFindings(PipelineError):
    """There is no table to read, or nothing to read it with; one sentence says which."""


@value
class Found:
    """One finding, as docs/forensics.md has it; moments are milliseconds since 1970."""

    group_id: str
    finding: str
    severity: str
    subject: str | None
    from_ms: int | None
    to_ms: int | None
    count: int
    what: str
    advice: str
    setting: str | None
    would_have_saved_ms: int | None


def stamp_of(directory: str) -> int | None:
    """Another number whenever the tables were built anew; None while there are none."""
    try:
        return (Path(directory) / _COMPLETE).stat().st_mtime_ns
    except OSError:
        return None


def read_findings(directory: str) -> tuple[Found, ...]:
    """The worst first. NoFindings where the tables are not complete."""
    root = Path(directory)
    try:
        json.loads((root / _COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise NoFindings(
            f"{directory} has no complete tables: they are being built, were cut off, or were "
            "never there; kohort pipeline forensics makes them"
        ) from None
    try:
        from pyarrow import ArrowException  # noqa: PLC0415  # only who reads tables needs it
        from pyarrow.parquet import read_table  # noqa: PLC0415
    except ImportError:
        raise NoFindings("reading tables needs pyarrow: install kohort[spark]") from None
    table = root / _TABLE
    if not any(table.glob("*.parquet")):
        return ()
    try:
        rows = read_table(table, columns=list(_COLUMNS)).to_pylist()
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise NoFindings(f"the findings in {directory} cannot be read: {reason}") from None
    found = [_found(each) for each in rows]
    return tuple(
        sorted(found, key=lambda each: (_RANKS.get(each.severity, 3), each.group_id, each.finding))
    )


def _found(row: dict[str, Any]) -> Found:
    return Found(
        group_id=row["group_id"],
        finding=row["finding"],
        severity=row["severity"],
        subject=row["subject"],
        from_ms=_millis(row["from_at"]),
        to_ms=_millis(row["to_at"]),
        count=row["count"] or 0,
        what=row["what"] or "",
        advice=row["advice"] or "",
        setting=row["setting"],
        would_have_saved_ms=row["would_have_saved_ms"],
    )


def _millis(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
