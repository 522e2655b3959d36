"""kohort decode: decodes Kafka messages from hexadecimal digits to JSON, without a broker.

If the bytes cannot be decoded, the command prints one sentence to stderr and exits with 1. If the
command line is invalid, it exits with 2.
"""

from typing import Final

import typer

from kohort.cli.lazy_group import lazy_group

COMMANDS: Final = {
    "request": ("request:run", "Decode a request. Its header names the API and the version."),
    "response": (
        "response:run",
        "Decode a response. It names neither API nor version, so give both.",
    ),
    "batch": ("batch:run", "Decode one record batch or several consecutive ones."),
    "offsets-record": ("offsets_record:run", "Decode a record of __consumer_offsets."),
}

app = typer.Typer(
    name="decode",
    cls=lazy_group("kohort.cli.decode", COMMANDS),
    help="Decode Kafka messages to JSON.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def main() -> None:
    """Without a callback, Typer does not create a group."""
