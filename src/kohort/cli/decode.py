"""kohort decode: any Kafka message, from hexadecimal digits to JSON. It never talks to a broker.

What cannot be read is told in one sentence on the error stream, and the exit code is 1; it is 2
where the command itself is not understood.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Final

import typer

from kohort.types import ErrorCode
from kohort.wire import batch, consumer_offsets
from kohort.wire.api import FILES, Api, find_api
from kohort.wire.embedded import read_version
from kohort.wire.envelope import decode_request, decode_response
from kohort.wire.errors import MalformedMessage, UnsupportedVersion, WireError
from kohort.wire.header import API_VERSIONS_KEY, request_header_version
from kohort.wire.jsonable import Json, jsonable

app = typer.Typer(name="decode", help="Read any Kafka message.", no_args_is_help=True)

_LENGTH_BYTES: Final = 4
_KEYS: Final = {file[4:].replace("_", ""): int(file[1:3]) for file in FILES}
"""API keys by name, as far as people agree how to write one: join-group and JoinGroup are one."""

_Digits = Annotated[
    str, typer.Argument(metavar="HEX", help="The bytes in hexadecimal, or - to read from stdin.")
]
_AsText = Annotated[
    bool, typer.Option("--text", help="Show bytes as text where they are printable UTF-8.")
]


@app.command()
def request(digits: _Digits, *, as_text: _AsText = False) -> None:
    """Read a request; its header tells the API and the version."""
    with _one_sentence_about_what_fails():
        data = _read_digits(digits)
        _show(_read_framed(data, lambda frame: _describe_request(frame, as_text=as_text)))


@app.command()
def response(
    digits: _Digits,
    *,
    api: Annotated[str, typer.Option(help="The API by name or number: join-group, or 11.")],
    version: Annotated[int, typer.Option(help="The version that its request was sent in.")],
    as_text: _AsText = False,
) -> None:
    """Read a response; it does not tell what it answers, so API and version must be given."""
    asked = _get_api(api)
    if version not in asked.versions:
        spoken = f"{asked.name} is spoken in versions {asked.versions[0]} to {asked.versions[-1]}."
        raise typer.BadParameter(spoken, param_hint="--version")
    with _one_sentence_about_what_fails():
        data = _read_digits(digits)
        _show(_read_framed(data, lambda f: _describe_response(f, asked, version, as_text=as_text)))


@app.command("batch")
def batches(digits: _Digits, *, as_text: _AsText = False) -> None:
    """Read one record batch, or several in a row."""
    with _one_sentence_about_what_fails():
        data = _read_digits(digits)
        position = _LENGTH_BYTES if _has_length(data) else 0
        described: list[Json] = []
        while position < len(data):
            each = batch.decode(data, position)
            position += each.header.size_in_bytes
            described.append(_describe_batch(each, as_text=as_text))
        _show(described)


@app.command()
def offsets_record(
    *,
    key: Annotated[str, typer.Option(metavar="HEX", help="The record's key, or - for stdin.")],
    value: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Its value, or - for stdin. A tombstone has none."),
    ] = None,
    as_text: _AsText = False,
) -> None:
    """Read a record of __consumer_offsets."""
    if key == value == "-":
        raise typer.BadParameter("stdin can hold only one of key and value.", param_hint="--value")
    with _one_sentence_about_what_fails():
        value_data = None if value is None else _read_digits(value)
        _show(_describe_offsets_record(_read_digits(key), value_data, as_text=as_text))


# From bytes to what is shown


def _describe_request(frame: bytes, *, as_text: bool) -> Json:
    header, body = decode_request(frame)
    api, version = find_api(header.request_api_key), header.request_api_version
    assert api is not None, "decode_request has found it"
    return {
        "api": api.name,
        "version": version,
        "header": jsonable(header, version=request_header_version(api.request, version)),
        "body": jsonable(body, version=version, as_text=as_text),
    }


def _describe_response(frame: bytes, api: Api, version: int, *, as_text: bool) -> Json:
    correlation_id, body = decode_response(frame, api.key, version)
    if api.key == API_VERSIONS_KEY and body.error_code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0  # A broker says so in version 0, whichever it was asked in (KIP-511).
    return {
        "api": api.name,
        "version": version,
        "header": {"correlation_id": correlation_id},
        "body": jsonable(body, version=version, as_text=as_text),
    }


def _describe_batch(each: batch.Batch, *, as_text: bool) -> Json:
    header = each.header
    return {
        "header": jsonable(header),
        "codec": header.codec.name.lower(),
        "timestamp_type": header.timestamp_type.name.lower(),
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "records": jsonable(each.records, as_text=as_text),
    }


def _describe_offsets_record(key_data: bytes, value_data: bytes | None, *, as_text: bool) -> Json:
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


def _read_framed(data: bytes, read: Callable[[bytes], Json]) -> Json:
    """Read a message with or without its length before it.

    A correlation id may look like the right length, so what cannot be read without its first four
    bytes is read with them. If neither can be done, the error is the first one's.
    """
    if not _has_length(data):
        try:
            return read(data)
        except UnsupportedVersion as error:
            raise _Unreadable(_explain(error) + _suspect_length(data)) from None
    try:
        return read(data[_LENGTH_BYTES:])
    except WireError as error:
        try:
            return read(data)
        except WireError:
            raise _moved(error, _LENGTH_BYTES) from None


def _has_length(data: bytes) -> bool:
    return int.from_bytes(data[:_LENGTH_BYTES]) == len(data) - _LENGTH_BYTES


def _suspect_length(data: bytes) -> str:
    """A cut message with its length still before it passes for a Produce of an absurd version."""
    if not data.startswith(b"\0\0"):
        return ""
    length, left = int.from_bytes(data[:_LENGTH_BYTES]), len(data) - _LENGTH_BYTES
    return f" If it begins with a length, that is {length}, but {left} bytes follow."


def _moved(error: WireError, by: int) -> WireError:
    """The same error, its position counted from the first byte that was given."""
    if not isinstance(error, MalformedMessage):
        return error
    return MalformedMessage(error.message, error.field, error.position + by, error.reason)


# From the command line to bytes


class _Unreadable(Exception):
    """What was given cannot be read; the message is the sentence to show."""


def _read_digits(argument: str) -> bytes:
    """The bytes that the digits stand for; white space and colons part them, 0x may begin them."""
    text = _read_stdin() if argument == "-" else argument
    groups = []
    for group in re.finditer(r"(?:0[xX])?([^\s:]+)", text):
        stray = re.search(r"[^0-9a-fA-F]", group[1])
        if stray is not None:
            place = group.start(1) + stray.start() + 1
            raise _Unreadable(f"Character {place}, {stray[0]!a}, is no hexadecimal digit.")
        if len(group[1]) % 2:
            place = group.start(1) + 1
            count = len(group[1])
            raise _Unreadable(f"From character {place} on the digits are odd in number: {count}.")
        groups.append(group[1])
    if not groups:
        raise _Unreadable("There are no bytes to read.")
    return bytes.fromhex("".join(groups))


def _read_stdin() -> str:
    try:
        return typer.get_binary_stream("stdin").read().decode("ascii", errors="replace")
    except (OSError, RuntimeError) as error:  # closed, or failing underneath
        raise _Unreadable(f"Stdin cannot be read: {error}") from None


def _get_api(name: str) -> Api:
    plain = re.sub(r"[\W_]", "", name).lower()
    numbers = {str(key): key for key in _KEYS.values()}
    key = (_KEYS | numbers).get(plain)
    api = None if key is None else find_api(key)
    if api is None:
        nearest = [find_api(_KEYS[near]) for near in get_close_matches(plain, _KEYS, n=1)]
        hint = "".join(f" Did you mean {near.name}?" for near in nearest if near is not None)
        raise typer.BadParameter(f"no API is called {name!r}.{hint}", param_hint="--api")
    return api


# To the terminal


def _show(described: Json) -> None:
    # Escaped to ASCII: a message may hold anything, and a terminal obeys some of it.
    typer.echo(json.dumps(described, indent=2))


@contextmanager
def _one_sentence_about_what_fails() -> Iterator[None]:
    try:
        yield
    except (_Unreadable, WireError) as error:
        typer.echo(_explain(error), err=True)
        raise typer.Exit(1) from None


def _explain(error: Exception) -> str:
    match error:
        case MalformedMessage():
            where = f"{error.field} at byte {error.position}"
            return f"{error.message} cannot be read: {where}: {error.reason}."
        case UnsupportedVersion(api_key=int(key)) if (api := find_api(key)) is not None:
            spoken = f"{api.versions[0]} to {api.versions[-1]}"
            return f"{api.name} has no version {error.version} here, only {spoken}."
        case UnsupportedVersion(api_key=int(key)):
            return f"No API here has the key {key}."
        case UnsupportedVersion():
            name = error.name[0].upper() + error.name[1:]
            return f"{name} has no version {error.version} here."
        case _:
            return str(error)
