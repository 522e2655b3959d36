"""The report as JSON: the same values under the same names, for programs. Pure."""

import json
from dataclasses import fields, is_dataclass
from typing import Any, Final

from kohort.pipeline.forensics.report.model import Report

FORMAT: Final = "kohort-forensics-report"
VERSION: Final = 1
"""Goes up when a name is changed or removed, not when one is added."""


def report_as_json(report: Report, *, indent: int | None = None) -> str:
    told = {"format": FORMAT, "version": VERSION, **plain(report)}
    return json.dumps(told, ensure_ascii=False, indent=indent, allow_nan=False)


def plain(each: Any) -> Any:
    """Values as objects, tuples as lists."""
    if is_dataclass(each):
        told = {field.name: plain(getattr(each, field.name)) for field in fields(each)}
        return told | ({"total": each.total} if hasattr(each, "total") else {})
    if isinstance(each, tuple | list):
        return [plain(item) for item in each]
    return each
