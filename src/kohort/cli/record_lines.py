"""Formats records as lines and parses lines into records, as plain text and as JSON.

`kohort produce --input json` reads what `kohort consume --json` writes. No function does I/O.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import Millis, value

Headers = tuple[tuple[str, bytes | None], ...]


class RecordField(StrEnum):
    """A field that may be printed before the value."""

    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"
    KEY = "key"


@value
class ParsedRecord:
    """A record to produce."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp: Millis | None = None


class BadRecordLine(Exception):
    """The line is no valid record. The message is the reason."""


# Plain lines


def format_plain(
    record: ConsumerRecord, fields: Sequence[RecordField], *, null: bytes, is_terminal: bool
) -> bytes:
    """Format the fields and then the value, separated by tabs.

    For a terminal, bytes that are not printable are escaped.
    """
    parts = [_format_field(record, field, null) for field in fields]
    parts.append(null if record.value is None else record.value)
    if is_terminal:
        parts = [_escape(part) for part in parts]
    return b"\t".join(parts) + b"\n"


def _format_field(record: ConsumerRecord, field: RecordField, null: bytes) -> bytes:
    match field:
        case RecordField.KEY:
            return null if record.key is None else bytes(record.key)
        case RecordField.HEADERS:
            pairs = (
                name.encode() + b"=" + (null if content is None else content)
                for name, content in record.headers
            )
            return b",".join(pairs)
        case _:
            return str(getattr(record, field.value)).encode()


def _escape(data: bytes) -> bytes:
    text = data.decode("utf-8", errors="backslashreplace")
    shown = (
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
    return "".join(shown).encode()


def parse_plain(line: bytes, *, separator: bytes | None, null: bytes | None) -> ParsedRecord:
    """Parse a line without its newline: a value, or a key, the separator and a value."""
    key: bytes | None = None
    content: bytes | None = line
    if separator is not None:
        key, found, content = line.partition(separator)
        if not found:
            raise BadRecordLine(f"no key separator {separator.decode()!r} found")
    if null is not None:
        key = None if key == null else key
        content = None if content == null else content
    return ParsedRecord(key=key, value=content)


# JSON lines


def format_json(record: ConsumerRecord) -> bytes:
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type.name.lower(),
        **_encode_bytes("key", record.key),
        **_encode_bytes("value", record.value),
        "headers": [
            {"name": name, **_encode_bytes("value", content)} for name, content in record.headers
        ],
    }
    # ASCII only: records may contain control characters that a terminal interprets.
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _encode_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """Encode as text; bytes that are not UTF-8 get another field name and Base64."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def parse_json(line: bytes) -> ParsedRecord:
    """Parse an object with a value and optional key, headers, partition and timestamp."""
    try:
        document = json.loads(line)
    except ValueError as error:
        raise BadRecordLine(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRecordLine("not a JSON object")
    unknown = sorted(document.keys() - _KNOWN_FIELDS)
    if unknown:
        raise BadRecordLine(f"unknown field {unknown[0]!r}")
    if "value" not in document and "value_base64" not in document:
        raise BadRecordLine("field 'value' is missing; use null for a tombstone")
    return ParsedRecord(
        key=_parse_bytes(document, "key"),
        value=_parse_bytes(document, "value"),
        headers=_parse_headers(document.get("headers") or ()),
        partition=_parse_integer(document, "partition"),
        timestamp=_parse_timestamp(document),
    )


_KNOWN_FIELDS: Final = frozenset(
    (
        *("topic", "partition", "offset", "timestamp", "timestamp_type", "headers"),
        *("key", "key_base64", "value", "value_base64"),
    )
)


def _parse_bytes(document: Mapping[str, Any], name: str) -> bytes | None:
    encoded = f"{name}_base64"
    if encoded in document:
        if name in document:
            raise BadRecordLine(f"both {name} and {encoded} are given; use one")
        return _parse_base64(document[encoded], encoded)
    content = document.get(name)
    if content is None:
        return None
    # A value that is not a string is produced as JSON.
    text = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadRecordLine(f"{name} is not valid Unicode") from None


def _parse_base64(content: object, name: str) -> bytes:
    try:
        return base64.b64decode(content if isinstance(content, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise BadRecordLine(f"{name} is not Base64") from None


def _parse_headers(document: Any) -> Headers:
    if isinstance(document, dict):
        document = [{"name": name, "value": content} for name, content in document.items()]
    if not isinstance(document, Iterable) or isinstance(document, str):
        raise BadRecordLine("headers are neither a list nor an object")
    return tuple(_parse_header(each) for each in document)


def _parse_header(document: Any) -> tuple[str, bytes | None]:
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        raise BadRecordLine("a header must be an object with a name and a value")
    return document["name"], _parse_bytes(document, "value")


def _parse_integer(document: Mapping[str, Any], name: str) -> int | None:
    number = document.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int):
        raise BadRecordLine(f"{name} is not a whole number")
    return number


def _parse_timestamp(document: Mapping[str, Any]) -> Millis | None:
    timestamp = _parse_integer(document, "timestamp")
    # -1 means that the record has no timestamp.
    return None if timestamp is None or timestamp < 0 else Millis(timestamp)
