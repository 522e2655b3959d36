"""The report of forensics: one page that opens anywhere, and the same as JSON.

    write_report(spark, "hdfs:///tables", "report.html")

It reads the silver and gold tables and changes nothing. Spark makes them small (`gathering`,
`detailing`); what is made of the small rows is pure: `telling` turns them into a `Report`, `page`
and `twin` write it down.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.pipeline.forensics.report.model import Report
from kohort.pipeline.forensics.report.page import report_as_html
from kohort.pipeline.forensics.report.pain import rank
from kohort.pipeline.forensics.report.telling import tell
from kohort.pipeline.forensics.report.twin import report_as_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORIES_MAX: Final = 50
"""Groups in full: nobody reads more in one sitting, and each costs the page up to 200 kB."""


def write_report(
    spark: "SparkSession", tables: str, to: str, *, groups: Sequence[str] = ()
) -> Report:
    """The page of the tables in `tables`, of some groups or of all, into a file of the driver's."""
    report = read_report(spark, tables, groups=groups)
    save_page(report, to)
    return report


def read_report(spark: "SparkSession", tables: str, *, groups: Sequence[str] = ()) -> Report:
    # What is pure here is for processes without Spark, too.
    from kohort.pipeline.forensics.report.detailing import detail  # noqa: PLC0415
    from kohort.pipeline.forensics.report.gathering import gather  # noqa: PLC0415
    from kohort.pipeline.forensics.report.reading import Shelf  # noqa: PLC0415
    from kohort.pipeline.forensics.store import Store  # noqa: PLC0415

    store = Store(spark, tables)
    # Refuses tables that are being built, or that a crash has left.
    store.summary()
    shelf = Shelf(store=store, groups=tuple(groups))
    overview = gather(shelf)
    ranked = rank(overview.summaries)
    names = [each.group_id for each in ranked[:STORIES_MAX]]
    details = (
        detail(shelf.only(names), since_ms=overview.since_ms or 0, until_ms=overview.until_ms or 0)
        if names
        else []
    )
    return tell(overview, ranked, details)


def save_page(report: Report, to: str) -> None:
    """Whoever looks meanwhile sees the page that was there before, never half of this one."""
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
