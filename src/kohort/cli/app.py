"""The command line as Typer has it: every verb under its name, with help and refusals."""

from typing import Annotated

import typer

from kohort.cli import (
    console,
    consume,
    corpus,
    decode,
    demo,
    events,
    groups,
    migrate,
    pipeline,
    produce,
    serve,
    simulate,
    topics,
)

app = typer.Typer(
    help="Kafka's consumer-group system in Python.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,
)


def _print_version(*, is_wanted: bool) -> None:
    if is_wanted:
        # Only here: reading package metadata takes longer than starting a node's listener.
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(f"kohort {version('kohort')}")
        raise typer.Exit


@app.callback()
def main(
    *,
    is_version_wanted: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Say which Kohort this is, and stop.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Hold the options that come before the verb."""


app.command("serve")(serve.run)
app.command("console")(console.run)
app.command("demo")(demo.run)
app.command("simulate")(simulate.run)
app.command("corpus")(corpus.run)
app.command("produce")(produce.run)
app.command("consume")(consume.run)
app.command("events")(events.run)
app.command("migrate")(migrate.run)
app.add_typer(groups.app)
app.add_typer(topics.app)
app.add_typer(decode.app)
app.add_typer(pipeline.app)
