"""Records as lines: plain ones for people and pipes, JSON for machines, and both ways back.

What `kohort consume --json` writes, `kohort produce --input json` reads. Nothing here waits, and
nothing prints.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kohort.types import Millis, value

if TYPE_CHECKING:
    from kohort.client.fetching.records import ConsumerRecord

Headers = tuple[tuple[str, bytes | None], ...]


class Field(StrEnum):
    """What may stand before a record's value on its line."""

    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"
    KEY = "key"


@value
class NewLine:
    """A line that was read: the record it asks for."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp: Millis | None = None


class BadLine(Exception):
    """A line that says no record; the message is the reason."""


# Plain lines


def write_plain(
    record: "ConsumerRecord", fields: Sequence[Field], *, null: bytes, is_for_eyes: bool
) -> bytes:
    """The value, and before it the fields that are wanted, with tabs between.

    Bytes are as they are, unless a terminal would obey them.
    """
    parts = [_write_field(record, field, null) for field in fields]
    parts.append(null if record.value is None else record.value)
    if is_for_eyes:
        parts = [_printable(part) for part in parts]
    return b"\t".join(parts) + b"\n"


def _write_field(record: "ConsumerRecord", field: Field, null: bytes) -> bytes:
    match field:
        case Field.KEY:
            return null if record.key is None else bytes(record.key)
        case Field.HEADERS:
            notes = (
                name.encode() + b"=" + (null if content is None else content)
                for name, content in record.headers
            )
            return b",".join(notes)
        case _:
            return str(getattr(record, field.value)).encode()


def _printable(data: bytes) -> bytes:
    text = data.decode("utf-8", errors="backslashreplace")
    shown = (
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
    return "".join(shown).encode()


def read_plain(line: bytes, *, separator: bytes | None, null: bytes | None) -> NewLine:
    """A line without its end: a value, or a key and a value with the separator between."""
    key: bytes | None = None
    content: bytes | None = line
    if separator is not None:
        key, found, content = line.partition(separator)
        if not found:
            raise BadLine(f"there is no key separator {separator.decode()!r} in it")
    if null is not None:
        key = None if key == null else key
        content = None if content == null else content
    return NewLine(key=key, value=content)


# JSON lines


def write_json(record: "ConsumerRecord") -> bytes:
    said: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type.name.lower(),
        **_spell("key", record.key),
        **_spell("value", record.value),
        "headers": [{"name": name, **_spell("value", content)} for name, content in record.headers],
    }
    # Escaped to ASCII: a record may hold anything, and a terminal obeys some of it.
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def _spell(name: str, data: bytes | None) -> dict[str, str | None]:
    """As text, or under another name in Base64 where it is none."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def read_json(line: bytes) -> NewLine:
    """An object with a value, and perhaps a key, headers, a partition and a timestamp."""
    try:
        said = json.loads(line)
    except ValueError as error:
        raise BadLine(f"it is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise BadLine("it is not a JSON object")
    unknown = sorted(said.keys() - _KNOWN)
    if unknown:
        raise BadLine(f"a record has no {unknown[0]!r}")
    if "value" not in said and "value_base64" not in said:
        raise BadLine("it has no value; say null for none")
    return NewLine(
        key=_read_bytes(said, "key"),
        value=_read_bytes(said, "value"),
        headers=_read_headers(said.get("headers") or ()),
        partition=_read_number(said, "partition"),
        timestamp=_read_timestamp(said),
    )


_KNOWN: Final = frozenset(
    (
        *("topic", "partition", "offset", "timestamp", "timestamp_type", "headers"),
        *("key", "key_base64", "value", "value_base64"),
    )
)


def _read_bytes(said: Mapping[str, Any], name: str) -> bytes | None:
    encoded = f"{name}_base64"
    if encoded in said:
        if name in said:
            raise BadLine(f"it has both {name} and {encoded}")
        return _read_base64(said[encoded], encoded)
    content = said.get(name)
    if content is None:
        return None
    # Whatever is no text is meant to be JSON itself.
    text = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadLine(f"its {name} is not Unicode") from None


def _read_base64(content: object, name: str) -> bytes:
    try:
        return base64.b64decode(content if isinstance(content, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise BadLine(f"its {name} is not Base64") from None


def _read_headers(said: Any) -> Headers:
    if isinstance(said, dict):
        said = [{"name": name, "value": content} for name, content in said.items()]
    if not isinstance(said, Iterable) or isinstance(said, str):
        raise BadLine("its headers are neither a list nor an object")
    return tuple(_read_header(each) for each in said)


def _read_header(said: Any) -> tuple[str, bytes | None]:
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        raise BadLine("a header is an object with a name and a value")
    return said["name"], _read_bytes(said, "value")


def _read_number(said: Mapping[str, Any], name: str) -> int | None:
    number = said.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int):
        raise BadLine(f"its {name} is not a whole number")
    return number


def _read_timestamp(said: Mapping[str, Any]) -> Millis | None:
    timestamp = _read_number(said, "timestamp")
    # -1 is how a record says that it has none.
    return None if timestamp is None or timestamp < 0 else Millis(timestamp)
