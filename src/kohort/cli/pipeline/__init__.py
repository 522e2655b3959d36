"""kohort pipeline: topics into tables, by Spark."""

from typing import Final

import typer

from kohort.cli.lazy_group import lazy_group

COMMANDS: Final = {
    "ingest": (
        "ingest:ingest",
        "Write a topic to a Parquet table, each record once. See docs/guide/ingest.md.",
    ),
    "forensics": (
        "forensics:forensics",
        "Explain every rebalance: what happened, what it cost, and what to change.",
    ),
}

app = typer.Typer(
    name="pipeline",
    cls=lazy_group("kohort.cli.pipeline", COMMANDS),
    help="Copy topics to tables and explain rebalances, with Spark.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def main() -> None:
    """Without a callback, Typer does not create a group."""
