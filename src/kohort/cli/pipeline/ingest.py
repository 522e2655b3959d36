"""kohort pipeline ingest: write a topic to a Parquet table with Spark.

Progress goes to stderr, the summary to stdout. The exit code is 0 after success, Ctrl-C included; 1
after an error; 2 for a wrong command line; 130 if a second Ctrl-C interrupted a batch.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kohort.cli.messages import fail
from kohort.cli.spark_options import (
    ConsumerSettings,
    Master,
    SparkSettings,
    Verbose,
    report_errors_in_one_line,
    stop_on_signals,
)
from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.ingest.options import (
    BadIngestOptions,
    IngestOptions,
    check_options,
    read_consumer_options,
)
from kohort.pipeline.ingest.preflight import check_before_start
from kohort.pipeline.ingest.run_status import IngestProgress, IngestSummary
from kohort.pipeline.session import (
    BadMaster,
    SessionOptions,
    check_master,
    check_spark,
    open_session,
)
from kohort.pipeline.source.options import Reset
from kohort.settings.readers import BadValue, read_list, read_pairs
from kohort.settings.times import read_duration


class From(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"


_Bootstrap = Annotated[str, typer.Option(metavar="HOST:PORT", help="Bootstrap servers.")]
_Topic = Annotated[str, typer.Option(metavar="NAME,...", help="Topics to read into one table.")]
_Group = Annotated[str, typer.Option(metavar="ID", help="Consumer group.")]
_To = Annotated[
    str, typer.Option(metavar="DIR", help="Directory of the table, on any Hadoop file system.")
]
_JsonSchema = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Parse JSON values with this schema: Spark DDL or a StructType in JSON.",
    ),
]
_PartitionBy = Annotated[
    str,
    typer.Option(
        metavar="COLUMN,...", help="Partition the table by columns, date, hour, partition or topic."
    ),
]
_Continuous = Annotated[
    bool,
    typer.Option(
        "--continuous/--once", help="Run until Ctrl-C, or read what is there now and stop."
    ),
]
_RowsPerBatch = Annotated[int, typer.Option(metavar="N", min=1, help="Most rows of one batch.")]
_Every = Annotated[
    str,
    typer.Option(metavar="TIME", help="Time between batches while there is no lag: 500ms, 5s, 2m."),
]
_InstanceId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Join as a static member with this group.instance.id."),
]
_From = Annotated[
    From, typer.Option("--from", help="Where to start partitions without a committed offset.")
]
_SkipLost = Annotated[
    bool,
    typer.Option("--skip-lost", help="Continue if records were deleted before they were read."),
]
_SkipMalformed = Annotated[
    bool,
    typer.Option(
        "--skip-malformed", help="Continue after batches that cannot be decoded, and report them."
    ),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def ingest(
    *,
    bootstrap: _Bootstrap,
    topic: _Topic,
    group: _Group,
    to: _To,
    json_schema: _JsonSchema = None,
    partition_by: _PartitionBy = "",
    continuous: _Continuous = True,
    master: Master = "local[*]",
    rows_per_batch: _RowsPerBatch = 1_000_000,
    every: _Every = "5s",
    group_instance_id: _InstanceId = None,
    from_: _From = From.EARLIEST,
    kafka: ConsumerSettings = None,
    spark: SparkSettings = None,
    skip_lost: _SkipLost = False,
    skip_malformed: _SkipMalformed = False,
    as_json: _AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Write a topic to a Parquet table, each record once. See docs/guide/ingest.md.

    Ctrl-C finishes the batch, commits it to the group and leaves the group.
    """
    try:
        options = IngestOptions(
            bootstrap_servers=bootstrap,
            topics=read_list(topic),
            group_id=group,
            target=to,
            schema=None if json_schema is None else _read_file(json_schema),
            partition_by=read_list(partition_by),
            is_continuous=continuous,
            rows_max=rows_per_batch,
            every_s=read_duration(every, "s") / 1000,
            instance_id=group_instance_id,
            reset=Reset(from_.value),
            skips_lost=skip_lost,
            skips_malformed=skip_malformed,
            kafka=read_consumer_options(kafka or ()),
        )
        check_options(options)
        check_master(master)
        settings = read_pairs(spark or (), "--spark")
    except (BadValue, BadIngestOptions, BadSourceOption, BadMaster) as error:
        raise typer.BadParameter(str(error)) from None
    session = SessionOptions(
        app_name=f"kohort ingest {topic}", master=master, settings=settings, is_verbose=verbose
    )
    with report_errors_in_one_line(is_verbose=verbose):
        _show(_ingest(options, session), as_json=as_json)


def _ingest(options: IngestOptions, session: SessionOptions) -> IngestSummary:
    check_spark()
    check_before_start(options)
    with (
        stop_on_signals() as (stop, install_handlers),
        _show_progress() as on_progress,
        open_session(session) as spark,
    ):
        from kohort.pipeline.ingest.ingest_run import run  # noqa: PLC0415  # needs PySpark

        # Spark has installed its own SIGINT handler, which cancels the batch.
        install_handlers()
        return run(spark, options, stop=stop, on_progress=on_progress)


def _read_file(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{file} is not UTF-8 text")


# Output


@contextmanager
def _show_progress() -> Iterator[Callable[[IngestProgress], None]]:
    """On a terminal one line that is overwritten, else one line per batch."""
    if not sys.stderr.isatty():
        yield _ProgressLines().show
        return
    from rich.console import Console  # noqa: PLC0415  # only on a terminal

    with Console(stderr=True).status("Starting Spark") as status:
        yield lambda progress: status.update(_line(progress))


class _ProgressLines:
    def __init__(self) -> None:
        self._batches = 0
        self._state = ""

    def show(self, progress: IngestProgress) -> None:
        if (progress.batches, progress.group_state) != (self._batches, self._state):
            self._batches, self._state = progress.batches, progress.group_state
            typer.echo(_line(progress), err=True)


def _line(progress: IngestProgress) -> str:
    parts = [f"{progress.rows} rows"]
    if progress.bad:
        parts.append(f"{progress.bad} bad")
    parts.append(f"{progress.batches} batches")
    if progress.rows_per_second:
        parts.append(f"{progress.rows_per_second:.0f} rows/s")
    if progress.lag is not None:
        parts.append(f"lag {progress.lag}")
    state = f"group {progress.group_state}"
    if progress.generation is not None and progress.generation >= 0:
        state += f", generation {progress.generation}"
    parts.append(state)
    if progress.is_stopping:
        parts.append("stopping after this batch")
    return ", ".join(parts)


def _show(summary: IngestSummary, *, as_json: bool) -> None:
    rate = summary.rows / summary.seconds if summary.seconds else 0.0
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "rows": summary.rows,
                    "bad_rows": summary.bad,
                    "batches": summary.batches,
                    "seconds": round(summary.seconds, 3),
                    "rows_per_second": round(rate, 1),
                    "lag": summary.lag,
                    "is_interrupted": summary.is_interrupted,
                    "is_group_told": summary.is_group_committed,
                    "has_left_group": summary.has_left,
                    "rows_in_table": summary.rows_total,
                    "bad_rows_in_table": summary.bad_total,
                    "read_by_others": list(summary.skipped),
                    "to": summary.target,
                    "data": summary.data,
                    "bad": summary.bad_data,
                }
            )
        )
        return
    typer.echo(
        f"{summary.rows} rows and {summary.bad} bad records in {summary.batches} batches, "
        f"{summary.seconds:.1f} s, {rate:.0f} rows/s"
    )
    typer.echo(f"the table has {summary.rows_total} rows and {summary.bad_total} bad records")
    for skipped in summary.skipped:
        typer.echo(f"skipped, because another member of the group has read it: {skipped}")
    if not summary.is_group_committed:
        typer.echo("the last batch is not committed to the group yet; the next run commits it")
    typer.echo(f'read it with kohort.pipeline.ingest.read(spark, "{summary.target}")')
