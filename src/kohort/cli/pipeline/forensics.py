"""kohort pipeline forensics: why groups rebalance, which member started it, and what it cost."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.cluster_options import now_ms
from kohort.cli.spark_options import (
    ConsumerSettings,
    Master,
    SparkSettings,
    Verbose,
    report_errors_in_one_line,
    stop_on_signals,
)
from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.forensics import report as page
from kohort.pipeline.forensics.cluster_probe import check_options
from kohort.pipeline.forensics.options import (
    KAFKA_REFUSED,
    BadForensicsOptions,
    ForensicsOptions,
    check,
)
from kohort.pipeline.forensics.preflight import check_before_start
from kohort.pipeline.forensics.tables import FINDINGS
from kohort.pipeline.forensics.tuning import SESSION_SETTINGS
from kohort.pipeline.ingest.options import BadIngestOptions, read_consumer_options
from kohort.pipeline.session import (
    BadMaster,
    SessionOptions,
    check_master,
    check_spark,
    open_session,
)
from kohort.pipeline.worker_python import is_local
from kohort.settings.readers import BadValue, read_pairs
from kohort.settings.times import read_since
from kohort.text.times import date_of

if TYPE_CHECKING:
    from kohort.pipeline.forensics.run import ForensicsSummary

_To = Annotated[
    str,
    typer.Option(metavar="DIR", help="Directory of the tables; new, or from an earlier run."),
]
_Bootstrap = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Read from this cluster.")
]
_FromLog = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Read a copied log directory of Kohort or Kafka."),
]
_Ends = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="End offsets of the logs as JSON lines, for --from-log."),
]
_Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Ignore older records: 2026-11-16T09:00, or 90m, 6h, 7d ago."
    ),
]
_Group = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Only this group; may be repeated.")
]
_Continuous = Annotated[
    bool,
    typer.Option(
        "--continuous/--once", help="Run until Ctrl-C, or read what is there now and stop."
    ),
]
_Rebuild = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=1, help="Shortest time between two builds of the tables."),
]
_OwnGroup = Annotated[
    str,
    typer.Option(metavar="ID", help="Consumer group of this command; left out of the tables."),
]
_Report = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write the report to this HTML file.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


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
    master: Master = "local[*]",
    kafka: ConsumerSettings = None,
    spark: SparkSettings = None,
    as_json: _AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Explain every rebalance: what happened, what it cost, and what to change.

    Causes are exact for Kohort brokers. For other Kafka brokers they are inferred, each with a
    confidence.
    """
    try:
        options = ForensicsOptions(
            target=to,
            log=from_log,
            bootstrap_servers=bootstrap,
            ends=ends,
            since=None if since is None else date_of(read_since(since, now_ms())),
            groups=tuple(group or ()),
            is_continuous=continuous,
            rebuild_s=rebuild,
            group_id=own_group,
            kafka=read_consumer_options(kafka or (), KAFKA_REFUSED),
        )
        check(options)
        if bootstrap is not None:
            check_options(options)
        check_master(master)
        settings = {**SESSION_SETTINGS, **read_pairs(spark or (), "--spark")}
    except (BadForensicsOptions, BadValue, BadIngestOptions, BadSourceOption, BadMaster) as error:
        raise typer.BadParameter(str(error)) from None
    session = SessionOptions(
        app_name="kohort forensics", master=master, settings=settings, is_verbose=verbose
    )
    with report_errors_in_one_line(is_verbose=verbose):
        _explain(options, session, report, as_json=as_json)


def _explain(
    options: ForensicsOptions, session: SessionOptions, report: str | None, *, as_json: bool
) -> None:
    check_spark()
    check_before_start(options, report=report, has_local_files=_has_local_files(session))
    with stop_on_signals() as (stop, install_handlers), open_session(session) as spark:
        from kohort.pipeline.forensics.run import run  # noqa: PLC0415  # needs PySpark

        # Spark has installed its own SIGINT handler.
        install_handlers()

        written: page.Report | None = None

        def on_built() -> None:
            nonlocal written
            if report is not None:
                written = page.write_report(spark, options.target, report, groups=options.groups)

        with _show_progress() as on_progress:
            summary = run(
                spark, options, stop=stop.after_batch, on_progress=on_progress, on_built=on_built
            )
        if as_json:
            read = written or page.read_report(spark, options.target, groups=options.groups)
            typer.echo(page.report_as_json(read))
        else:
            _show(summary, _find_worst(spark, options.target), options.target, report)


def _has_local_files(session: SessionOptions) -> bool:
    """Whether Spark finds paths without a scheme on the file system of this process."""
    has_default = "HADOOP_CONF_DIR" in os.environ or "spark.hadoop.fs.defaultFS" in session.settings
    return is_local(session.master) and not has_default


@contextmanager
def _show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal, else a line for each step."""
    if not sys.stderr.isatty():
        yield lambda text, step, steps: typer.echo(_line(text, step, steps), err=True)
        return
    from rich.console import Console  # noqa: PLC0415  # only on a terminal
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("starting Spark", total=None)
        yield lambda text, step, steps: progress.update(
            task, description=text, completed=max(0, step - 1), total=steps or None
        )


def _line(text: str, step: int, steps: int) -> str:
    return f"{step}/{steps} {text}" if steps else text


def _find_worst(spark: Any, target: str) -> list[Any]:
    from kohort.pipeline.forensics.store import Store  # noqa: PLC0415  # needs PySpark

    order = "CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END"
    findings = Store(spark, target).read(FINDINGS).selectExpr("*", f"{order} AS rank")
    rows: list[Any] = findings.orderBy("rank", "group_id", "finding").limit(20).collect()
    return rows


def _show(summary: "ForensicsSummary", worst: list[Any], target: str, report: str | None) -> None:
    counts = summary.table_summary["tables"]
    typer.echo(
        f"{summary.records} records, {counts['generations']} generations, "
        f"{counts['rebalances']} rebalances, {counts['findings']} findings, "
        f"{summary.seconds:.1f} s"
    )
    for incomplete in summary.incomplete:
        typer.echo(f"incomplete end of a segment, left out: {incomplete}")
    if counts["undecodable"]:
        typer.echo(
            f"{counts['undecodable']} records could not be decoded; see the table "
            "silver/undecodable"
        )
    if not summary.table_summary["has_events"]:
        typer.echo("no Kohort events: causes are inferred; join times and reasons are unknown")
    for row in worst:
        typer.echo(f"{row.severity:8} {row.group_id}: {row.what}")
        typer.echo(f"{'':8} {row.advice}")
    typer.echo(f"tables: {target}")
    if report is not None:
        typer.echo(f"report: {report}")
