"""The `kohort` command and its table of subcommands."""

from importlib.metadata import version
from typing import Annotated, Final

import typer

from kohort.cli.lazy_group import lazy_group

COMMANDS: Final = {
    "serve": ("serve:run", "Run a broker until SIGTERM or Ctrl-C."),
    "console": ("console:run", "Serve the web console of a Kafka cluster."),
    "demo": (
        "demo:run",
        "Run a demo: a node, its console, consumers that fail on schedule, and a Spark report.",
    ),
    "simulate": (
        "simulate:run",
        "Run node, log and consumers in a deterministic simulation that injects faults.",
    ),
    "produce": ("produce:run", "Produce one record per line of a file or of stdin."),
    "consume": ("consume:run", "Print the records of topics, with or without a consumer group."),
    "events": (
        "events:run",
        "Print the group events of a Kohort node: joins, departures, rebalances.",
    ),
    "wait": (
        "wait:run",
        "Block until a consumer group is as expected; all conditions must hold at the same time.",
    ),
    "migrate": (
        "migrate:run",
        "Copy topics and groups to another cluster exactly once, and verify the copy.",
    ),
    "groups": ("groups:app", "Inspect and change consumer groups of Kohort or Apache Kafka."),
    "topics": ("topics:app", "Inspect and change topics of Kohort or Apache Kafka."),
    "decode": ("decode:app", "Decode Kafka messages to JSON."),
    "pipeline": ("pipeline:app", "Copy topics to tables and explain rebalances, with Spark."),
}

app = typer.Typer(
    cls=lazy_group("kohort.cli", COMMANDS),
    help="Kafka's consumer-group system in Python.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,
)


def _print_version(*, is_given: bool) -> None:
    if is_given:
        typer.echo(f"kohort {version('kohort')}")
        raise typer.Exit


@app.callback()
def main(
    *,
    is_version_requested: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Define the options that come before the command."""
