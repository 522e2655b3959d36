"""kohort pipeline: topics into tables, by Spark.

Figures of a run go to the error stream, what it came to goes to standard output. The exit code is 0
where all went well, Ctrl-C included; 1 where something failed; 2 where the command is not
understood; 130 where a second Ctrl-C did not let a batch come to its end.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kohort.cli.forensics import forensics
from kohort.cli.spark_runs import one_sentence_about_what_fails, refuse, until_told_to_end

if TYPE_CHECKING:
    from kohort.pipeline.ingest.wish import Progress, Summary, Wish
    from kohort.pipeline.session import SessionWish

app = typer.Typer(name="pipeline", help="Topics into tables, by Spark.", no_args_is_help=True)


class From(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"


@app.callback()
def main() -> None:
    """Topics into tables, by Spark."""


_Bootstrap = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where a broker is.")]
_Topic = Annotated[
    str, typer.Option(metavar="NAME,...", help="What to read; several share a table.")
]
_Group = Annotated[str, typer.Option(metavar="ID", help="The group that reads it.")]
_To = Annotated[
    str, typer.Option(metavar="DIR", help="Where the table is, on any file system of Hadoop's.")
]
_JsonSchema = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Parse values: Spark's DDL, or a StructType in JSON."),
]
_PartitionBy = Annotated[
    str,
    typer.Option(
        metavar="COLUMN,...", help="Directories by columns, date, hour, partition or topic."
    ),
]
_Continuous = Annotated[
    bool, typer.Option("--continuous/--once", help="Until Ctrl-C, or what there is now.")
]
_Master = Annotated[str, typer.Option(metavar="URL", help="Where Spark runs.")]
_RowsPerBatch = Annotated[int, typer.Option(metavar="N", min=1, help="At most so many.")]
_Every = Annotated[
    str, typer.Option(metavar="TIME", help="From batch to batch without lag: 500ms, 5s, 2m.")
]
_InstanceId = Annotated[
    str | None, typer.Option(metavar="ID", help="Be a static member under this name.")
]
_From = Annotated[
    From, typer.Option("--from", help="Where to begin what the group never committed.")
]
_Kafka = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of the consumer; may be repeated."),
]
_Spark = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be repeated."),
]
_SkipLost = Annotated[
    bool, typer.Option("--skip-lost", help="Go on where records are gone, unread.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Sum up in JSON.")]
_Verbose = Annotated[bool, typer.Option("--verbose", help="Show Spark's log as well.")]


@app.command()
def ingest(
    *,
    bootstrap: _Bootstrap,
    topic: _Topic,
    group: _Group,
    to: _To,
    json_schema: _JsonSchema = None,
    partition_by: _PartitionBy = "",
    continuous: _Continuous = True,
    master: _Master = "local[*]",
    rows_per_batch: _RowsPerBatch = 1_000_000,
    every: _Every = "5s",
    group_instance_id: _InstanceId = None,
    from_: _From = From.EARLIEST,
    kafka: _Kafka = None,
    spark: _Spark = None,
    skip_lost: _SkipLost = False,
    as_json: _AsJson = False,
    verbose: _Verbose = False,
) -> None:
    """Keep a topic as Parquet, each record once. docs/ingest.md says how to read it.

    Ctrl-C finishes the batch, tells the group, and leaves it.
    """
    from kohort.pipeline.errors import BadSourceOption  # noqa: PLC0415  # other verbs need none
    from kohort.pipeline.ingest import wish as words  # noqa: PLC0415
    from kohort.pipeline.session import BadMaster, SessionWish, check_master  # noqa: PLC0415
    from kohort.pipeline.source.options import Reset  # noqa: PLC0415

    try:
        wish = words.Wish(
            bootstrap_servers=bootstrap,
            topics=words.read_names(topic),
            group_id=group,
            target=to,
            schema=None if json_schema is None else _read_file(json_schema),
            partition_by=words.read_names(partition_by),
            is_continuous=continuous,
            rows_max=rows_per_batch,
            every_s=words.read_seconds(every),
            instance_id=group_instance_id,
            reset=Reset(from_.value),
            skips_lost=skip_lost,
            kafka=words.read_kafka(kafka or ()),
        )
        words.check_wish(wish)
        check_master(master)
        settings = words.read_pairs(spark or (), "--spark")
    except (words.BadWish, BadSourceOption, BadMaster) as error:
        raise typer.BadParameter(str(error)) from None
    session = SessionWish(
        app_name=f"kohort ingest {topic}", master=master, settings=settings, is_verbose=verbose
    )
    with one_sentence_about_what_fails(is_verbose=verbose):
        _show(_ingest(wish, session), as_json=as_json)


def _ingest(wish: "Wish", session: "SessionWish") -> "Summary":
    from kohort.pipeline.ingest.asking import look_ahead  # noqa: PLC0415  # as above
    from kohort.pipeline.ingest.wish import check_wish  # noqa: PLC0415
    from kohort.pipeline.session import check_spark, open_session  # noqa: PLC0415

    check_spark()
    look_ahead(check_wish(wish))
    with (
        until_told_to_end() as (ending, keep_listening),
        _watching() as watch,
        open_session(session) as spark,
    ):
        from kohort.pipeline.ingest.running import run  # noqa: PLC0415  # it needs a Spark

        # Spark has taken Ctrl-C for itself: it would cancel the batch.
        keep_listening()
        return run(spark, wish, ending=ending, watch=watch)


def _read_file(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        refuse(f"{file} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        refuse(f"{file} is no text in UTF-8")


app.command()(forensics)


# Showing


@contextmanager
def _watching() -> "Iterator[Callable[[Progress], None]]":
    """One line that is written over, where somebody watches; else a line for each batch."""
    if not sys.stderr.isatty():
        yield _Lines().tell
        return
    from rich.console import Console  # noqa: PLC0415  # as above

    with Console(stderr=True).status("Spark is starting") as status:
        yield lambda progress: status.update(_line(progress))


class _Lines:
    def __init__(self) -> None:
        self._batches = 0
        self._state = ""

    def tell(self, progress: "Progress") -> None:
        if (progress.batches, progress.group_state) != (self._batches, self._state):
            self._batches, self._state = progress.batches, progress.group_state
            typer.echo(_line(progress), err=True)


def _line(progress: "Progress") -> str:
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
    if progress.is_ending:
        parts.append("ending after this batch")
    return ", ".join(parts)


def _show(summary: "Summary", *, as_json: bool) -> None:
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
                    "is_group_told": summary.is_group_told,
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
        f"{summary.rows} rows and {summary.bad} bad ones in {summary.batches} batches, "
        f"{summary.seconds:.1f} s, {rate:.0f} rows/s"
    )
    typer.echo(f"the table has {summary.rows_total} rows, and {summary.bad_total} bad ones aside")
    for skipped in summary.skipped:
        typer.echo(f"left out, for another member of the group has read it: {skipped}")
    if not summary.is_group_told:
        typer.echo("the group has not heard of the last batch; the next run tells it")
    typer.echo(f'read it with kohort.pipeline.ingest.read(spark, "{summary.target}")')
