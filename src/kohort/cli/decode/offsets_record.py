"""kohort decode offsets-record."""

from typing import Annotated

import typer

from kohort.cli.decode.command_io import AsText, print_decoded, read_hex, report_decode_errors
from kohort.wire import consumer_offsets
from kohort.wire.consumer_protocol import read_version
from kohort.wire.jsonable import Json, jsonable


def run(
    *,
    key: Annotated[str, typer.Option(metavar="HEX", help="Key of the record, or - to read stdin.")],
    value: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="Value of the record, or - to read stdin. Omit for a tombstone."
        ),
    ] = None,
    as_text: AsText = False,
) -> None:
    """Decode a record of __consumer_offsets."""
    if key == value == "-":
        raise typer.BadParameter(
            "only one of --key and --value can be read from stdin.", param_hint="--value"
        )
    with report_decode_errors():
        value_data = None if value is None else read_hex(value)
        print_decoded(_decode(read_hex(key), value_data, as_text=as_text))


def _decode(key_data: bytes, value_data: bytes | None, *, as_text: bool) -> Json:
    key = consumer_offsets.decode_key(key_data)
    value = consumer_offsets.decode_value(key, value_data)
    version = None if value_data is None else read_version("record value", value_data)
    return {
        "kind": type(key).__name__.removesuffix("Key"),
        "key_version": read_version("record key", key_data),
        "key": jsonable(key),
        "value_version": version,
        "value": jsonable(value, version=version, as_text=as_text),
    }
