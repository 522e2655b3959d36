"""Input, output and errors that the decode commands share."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from kohort.wire.api import find_api
from kohort.wire.errors import MalformedMessage, UnsupportedVersion, WireError
from kohort.wire.jsonable import Json

LENGTH_BYTES: Final = 4

HexDigits = Annotated[
    str, typer.Argument(metavar="HEX", help="The bytes in hexadecimal, or - to read stdin.")
]
AsText = Annotated[
    bool, typer.Option("--text", help="Show bytes as text if they are printable UTF-8.")
]


class _InvalidInput(Exception):
    """The message is the sentence to print."""


@contextmanager
def report_decode_errors() -> Iterator[None]:
    try:
        yield
    except (_InvalidInput, WireError) as error:
        typer.echo(_explain(error), err=True)
        raise typer.Exit(1) from None


def print_decoded(decoded: Json) -> None:
    # ASCII only: messages may contain control characters that a terminal interprets.
    typer.echo(json.dumps(decoded, indent=2))


# Hexadecimal digits


def read_hex(argument: str) -> bytes:
    """Parse groups of hex digits, separated by white space or colons; each may start with 0x."""
    text = _read_stdin() if argument == "-" else argument
    groups = []
    for group in re.finditer(r"(?:0[xX])?([^\s:]+)", text):
        invalid = re.search(r"[^0-9a-fA-F]", group[1])
        if invalid is not None:
            position = group.start(1) + invalid.start() + 1
            raise _InvalidInput(
                f"Character {position}, {invalid[0]!a}, is not a hexadecimal digit."
            )
        if len(group[1]) % 2:
            position, count = group.start(1) + 1, len(group[1])
            raise _InvalidInput(f"Odd number of digits from character {position} on: {count}.")
        groups.append(group[1])
    if not groups:
        raise _InvalidInput("There are no bytes to decode.")
    return bytes.fromhex("".join(groups))


def _read_stdin() -> str:
    try:
        return typer.get_binary_stream("stdin").read().decode("ascii", errors="replace")
    except (OSError, RuntimeError) as error:  # stdin is closed or failing
        raise _InvalidInput(f"Cannot read stdin: {error}") from None


# Length prefix


def has_length_prefix(data: bytes) -> bool:
    return int.from_bytes(data[:LENGTH_BYTES]) == len(data) - LENGTH_BYTES


def decode_frame(data: bytes, decode: Callable[[bytes], Json]) -> Json:
    """Decode a message with or without its length prefix.

    The first four bytes may equal the length by chance. If decoding fails without them, the whole
    input is decoded. If both fail, the first error is raised.
    """
    if not has_length_prefix(data):
        try:
            return decode(data)
        except UnsupportedVersion as error:
            raise _InvalidInput(_explain(error) + _hint_length(data)) from None
    try:
        return decode(data[LENGTH_BYTES:])
    except WireError as error:
        try:
            return decode(data)
        except WireError:
            raise _shift_position(error, LENGTH_BYTES) from None


def _hint_length(data: bytes) -> str:
    """The first two bytes of a small length are 0, which is the API key of Produce."""
    if not data.startswith(b"\0\0"):
        return ""
    length, left = int.from_bytes(data[:LENGTH_BYTES]), len(data) - LENGTH_BYTES
    return f" If the message begins with its length, that is {length}, but {left} bytes follow."


def _shift_position(error: WireError, by: int) -> WireError:
    """Count the position from the first byte of the input."""
    if not isinstance(error, MalformedMessage):
        return error
    return MalformedMessage(error.message, error.field, error.position + by, error.reason)


# Errors


def _explain(error: Exception) -> str:
    match error:
        case MalformedMessage():
            where = f"{error.field} at byte {error.position}"
            return f"Cannot decode {error.message}: {where}: {error.reason}."
        case UnsupportedVersion(api_key=int(key)) if (api := find_api(key)) is not None:
            supported = f"{api.versions[0]} to {api.versions[-1]}"
            return f"{api.name} version {error.version} is not supported, only {supported}."
        case UnsupportedVersion(api_key=int(key)):
            return f"API key {key} is not supported."
        case UnsupportedVersion():
            name = error.name[0].upper() + error.name[1:]
            return f"{name} version {error.version} is not supported."
        case _:
            return str(error)
