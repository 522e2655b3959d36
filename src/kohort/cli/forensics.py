"""kohort pipeline forensics: why groups rebalanced, who started it, and what it cost."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.spark_runs import one_sentence_about_what_fails, until_told_to_end

if TYPE_CHECKING:
    from kohort.pipeline.forensics.run import ForensicsSummary
    from kohort.pipeline.forensics.wish import ForensicsWish
    from kohort.pipeline.session import SessionWish


_To = Annotated[str, typer.Option(metavar="DIR", help="Where the tables are kept.")]
_Bootstrap = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="A cluster whose groups to look at.")
]
_FromLog = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="A copied log directory, of Kohort or of Kafka."),
]
_Ends = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="JSON lines: where logs ended. For --from-log."),
]
_Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only what is newer: 2026-11-16T09:00, or 90m, 6h, 7d."),
]
_Group = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Only this one; may be repeated.")
]
_Continuous = Annotated[
    bool, typer.Option("--continuous/--once", help="Until Ctrl-C, or what there is now.")
]
_Rebuild = Annotated[
    float, typer.Option(metavar="SECONDS", min=1, help="Build tables no more often.")
]
_OwnGroup = Annotated[str, typer.Option(metavar="ID", help="The group that reads; it is left out.")]
_Report = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write one page of HTML for people.")
]
_Master = Annotated[str, typer.Option(metavar="URL", help="Where Spark runs.")]
_Kafka = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of the consumer; may be repeated."),
]
_Spark = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be repeated."),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Tell all findings in JSON.")]
_Verbose = Annotated[bool, typer.Option("--verbose", help="Show Spark's log as well.")]


def forensics(
    *,
    to: _To,
    bootstrap: _Bootstrap = None,
    from_log: _FromLog = None,
    ends: _Ends = None,
    since: _Since = None,
    group: _Group = None,
    continuous: _Continuous = False,
    rebuild: _Rebuild = 60.0,
    own_group: _OwnGroup = "kohort-forensics",
    report: _Report = None,
    master: _Master = "local[*]",
    kafka: _Kafka = None,
    spark: _Spark = None,
    as_json: _AsJson = False,
    verbose: _Verbose = False,
) -> None:
    """Explain every rebalance: tables of what happened, and what to change.

    On Kohort every cause is exact. On any other Kafka it is inferred, with a confidence.
    """
    from kohort.pipeline.errors import BadSourceOption  # noqa: PLC0415  # other verbs need none
    from kohort.pipeline.forensics import wish as words  # noqa: PLC0415
    from kohort.pipeline.forensics.asking import check_options  # noqa: PLC0415
    from kohort.pipeline.forensics.tuning import SESSION  # noqa: PLC0415
    from kohort.pipeline.ingest.wish import BadWish, read_kafka, read_pairs  # noqa: PLC0415
    from kohort.pipeline.session import BadMaster, SessionWish, check_master  # noqa: PLC0415

    try:
        wish = words.ForensicsWish(
            target=to,
            log=from_log,
            bootstrap_servers=bootstrap,
            ends=ends,
            since=None if since is None else words.read_since(since, datetime.now(UTC)),
            groups=tuple(group or ()),
            is_continuous=continuous,
            rebuild_s=rebuild,
            group_id=own_group,
            kafka=read_kafka(kafka or (), words.KAFKA_REFUSED),
        )
        words.check(wish)
        if bootstrap is not None:
            check_options(wish)
        check_master(master)
        settings = {**SESSION, **read_pairs(spark or (), "--spark")}
    except (words.BadForensicsWish, BadWish, BadSourceOption, BadMaster) as error:
        raise typer.BadParameter(str(error)) from None
    session = SessionWish(
        app_name="kohort forensics", master=master, settings=settings, is_verbose=verbose
    )
    with one_sentence_about_what_fails(is_verbose=verbose):
        _explain(wish, session, report, as_json=as_json)


def _explain(
    wish: "ForensicsWish", session: "SessionWish", report: str | None, *, as_json: bool
) -> None:
    from kohort.pipeline.forensics.asking import find_topics  # noqa: PLC0415  # as above
    from kohort.pipeline.session import check_spark, open_session  # noqa: PLC0415

    check_spark()
    if wish.bootstrap_servers is not None:
        # Before a Spark is started for nothing.
        find_topics(wish)
    with until_told_to_end() as (ending, keep_listening), open_session(session) as spark:
        from kohort.pipeline.forensics import report as page  # noqa: PLC0415
        from kohort.pipeline.forensics.run import run  # noqa: PLC0415  # they need a Spark

        # Spark has taken Ctrl-C for itself.
        keep_listening()

        written: page.Report | None = None

        def on_built() -> None:
            nonlocal written
            if report is not None:
                written = page.write_report(spark, wish.target, report, groups=wish.groups)

        with _watching() as watch:
            summary = run(spark, wish, ending=ending.after_batch, watch=watch, on_built=on_built)
        if as_json:
            told = written or page.read_report(spark, wish.target, groups=wish.groups)
            typer.echo(page.report_as_json(told))
        else:
            _show(summary, _find_worst(spark, wish.target), wish.target, report)


@contextmanager
def _watching() -> Iterator[Callable[[str, int, int], None]]:
    """A bar where somebody watches; else a line for each step."""
    if not sys.stderr.isatty():
        yield lambda what, step, steps: typer.echo(_line(what, step, steps), err=True)
        return
    from rich.console import Console  # noqa: PLC0415  # as above
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("Spark is starting", total=None)
        yield lambda what, step, steps: progress.update(
            task, description=what, completed=max(0, step - 1), total=steps or None
        )


def _line(what: str, step: int, steps: int) -> str:
    return f"{step}/{steps} {what}" if steps else what


def _find_worst(spark: Any, target: str) -> list[Any]:
    from kohort.pipeline.forensics.store import Store  # noqa: PLC0415  # as above
    from kohort.pipeline.forensics.tables import FINDINGS  # noqa: PLC0415

    order = "CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END"
    found = Store(spark, target).read(FINDINGS).selectExpr("*", f"{order} AS rank")
    rows: list[Any] = found.orderBy("rank", "group_id", "finding").limit(20).collect()
    return rows


def _show(summary: "ForensicsSummary", worst: list[Any], target: str, report: str | None) -> None:
    counts = summary.figures["tables"]
    typer.echo(
        f"{summary.records} records, {counts['generations']} generations, "
        f"{counts['rebalances']} rebalances, {counts['findings']} findings, "
        f"{summary.seconds:.1f} s"
    )
    for torn in summary.torn:
        typer.echo(f"left out, for it is torn: {torn}")
    if counts["undecodable"]:
        typer.echo(f"{counts['undecodable']} records make no sense; see silver/undecodable")
    if not summary.figures["has_events"]:
        typer.echo(
            "no events of Kohort's: causes are inferred, join times and reasons are not known"
        )
    for row in worst:
        typer.echo(f"{row.severity:8} {row.group_id}: {row.what}")
        typer.echo(f"{'':8} {row.advice}")
    typer.echo(f"the tables are in {target}")
    if report is not None:
        typer.echo(f"the report is {report}")
