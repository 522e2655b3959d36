"""The report of forensics: one self-contained HTML page, and the same report as JSON.

    write_report(spark, "hdfs:///tables", "report.html")

It reads the silver and gold tables and changes nothing. Spark computes few small rows (`summaries`,
`details`); everything after that is pure: `builder` makes a `Report` of them (`model`), with its
`sentences` and the `severity` of each group, and `page` writes the HTML.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.pipeline.forensics.report.builder import build_report
from kohort.pipeline.forensics.report.page import report_as_html
from kohort.pipeline.forensics.report.report_model import Report, report_as_json
from kohort.pipeline.forensics.report.severity import rank

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DETAILS_MAX: Final = 50
"""Groups in detail; each adds up to 200 kB to the page."""


def write_report(
    spark: "SparkSession", tables: str, to: str, *, groups: Sequence[str] = ()
) -> Report:
    """Write the page about some groups, or all, to a file on the driver."""
    report = read_report(spark, tables, groups=groups)
    save_page(report, to)
    return report


def read_report(spark: "SparkSession", tables: str, *, groups: Sequence[str] = ()) -> Report:
    # The pure parts of the report are importable without Spark.
    from kohort.pipeline.forensics.report.details import read_details  # noqa: PLC0415
    from kohort.pipeline.forensics.report.summaries import (  # noqa: PLC0415
        GroupTables,
        read_overview,
    )
    from kohort.pipeline.forensics.store import Store  # noqa: PLC0415

    store = Store(spark, tables)
    # Raises NoTables if the tables are being built or incomplete.
    store.summary()
    group_tables = GroupTables(store=store, groups=tuple(groups))
    overview = read_overview(group_tables)
    ranked = rank(overview.summaries)
    names = [each.group_id for each in ranked[:DETAILS_MAX]]
    details = (
        read_details(
            group_tables.only(names),
            since_ms=overview.since_ms or 0,
            until_ms=overview.until_ms or 0,
        )
        if names
        else []
    )
    return build_report(overview, ranked, details)


def save_page(report: Report, to: str) -> None:
    """Replace the file atomically: readers see the previous page or this one."""
    target = Path(to)
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.write_text(report_as_html(report), encoding="utf-8")
    unfinished.replace(target)


__all__ = [
    "Report",
    "read_report",
    "report_as_html",
    "report_as_json",
    "save_page",
    "write_report",
]
