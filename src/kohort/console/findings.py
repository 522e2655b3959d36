"""The findings of `kohort pipeline forensics`, read from their Parquet table without Spark.

Reads local directories only, and changes nothing.
"""

import json
import threading
from datetime import datetime
from pathlib import Path
from typing import Any, Final

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


class FindingsUnavailable(Exception):
    """The table does not exist or cannot be read; the message says why."""


@value
class StoredFinding:
    """One finding, as in docs/reference/forensics.md; times are milliseconds since 1970."""

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


class FindingsStore:
    """Caches the findings until the tables are rebuilt."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        self._stamp: int | None = None
        self._findings: tuple[StoredFinding, ...] = ()

    def read(self) -> tuple[StoredFinding, ...]:
        """All findings, the worst first; raises FindingsUnavailable if they cannot be read."""
        with self._lock:
            stamp = stamp_of(self.directory)
            if stamp is None or stamp != self._stamp:
                self._findings = read_findings(self.directory)
                self._stamp = stamp
            return self._findings

    def about(self, group_id: str) -> tuple[StoredFinding, ...]:
        """The findings about one group; empty if none can be read."""
        try:
            return tuple(each for each in self.read() if each.group_id == group_id)
        except FindingsUnavailable:
            return ()


def stamp_of(directory: str) -> int | None:
    """A number that changes when the tables are rebuilt; None if there are none."""
    try:
        return (Path(directory) / _COMPLETE).stat().st_mtime_ns
    except OSError:
        return None


def read_findings(directory: str) -> tuple[StoredFinding, ...]:
    """All findings, the worst first. Raises FindingsUnavailable if the tables are not complete."""
    root = Path(directory)
    try:
        json.loads((root / _COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise FindingsUnavailable(
            f"{directory} has no complete forensics tables. Run kohort pipeline forensics, or "
            "wait until it has finished"
        ) from None
    try:
        from pyarrow import ArrowException  # noqa: PLC0415  # optional dependency
        from pyarrow.parquet import read_table  # noqa: PLC0415
    except ImportError:
        raise FindingsUnavailable(
            "reading the tables requires pyarrow: install kohort[spark]"
        ) from None
    table = root / _TABLE
    if not any(table.glob("*.parquet")):
        return ()
    try:
        rows = read_table(table, columns=list(_COLUMNS)).to_pylist()
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise FindingsUnavailable(f"cannot read the findings in {directory}: {reason}") from None
    found = [_read_row(each) for each in rows]
    return tuple(
        sorted(found, key=lambda each: (_RANKS.get(each.severity, 3), each.group_id, each.finding))
    )


def _read_row(row: dict[str, Any]) -> StoredFinding:
    return StoredFinding(
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


def _millis(timestamp: datetime | None) -> int | None:
    return None if timestamp is None else round(timestamp.timestamp() * 1000)
