"""Converts decoded values to JSON-compatible data for display.

A struct becomes a dict in field order, bytes become hexadecimal digits, a UUID its canonical text.
There is no conversion back.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from kohort.wire.schema import Field

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def jsonable(value: object, *, version: int | None = None, as_text: bool = False) -> Json:
    """Convert a value.

    With `version`, fields that this version does not have are omitted. With `as_text`, bytes that
    are printable UTF-8 become text.
    """
    match value:
        case Enum():
            return value.name
        case None | str() | int() | float():
            return value
        case bytes():
            return _bytes_to_json(value, as_text=as_text)
        case tuple() | list():
            return [jsonable(item, version=version, as_text=as_text) for item in value]
        case _:
            return _struct_to_json(value, version, as_text=as_text)


def _struct_to_json(value: object, version: int | None, *, as_text: bool) -> Json:
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is not a decoded value")
    result: dict[str, Json] = {}
    for each in fields(value):
        wire: Field | None = each.metadata.get("wire")
        if wire is None or version is None or wire.exists_in(version):
            content = _uuids_to_text(wire, getattr(value, each.name))
            result[each.name] = jsonable(content, version=version, as_text=as_text)
    return result


def _uuids_to_text(wire: Field | None, content: object) -> object:
    """Only the field declaration distinguishes a UUID from other values of 16 bytes."""
    match content:
        case bytes() if wire is not None and wire.kind == "uuid":
            return str(UUID(bytes=content))
        case Sequence() if wire is not None and wire.element is not None:
            return [_uuids_to_text(wire.element, item) for item in content]
        case _:
            return content


def _bytes_to_json(data: bytes, *, as_text: bool) -> str:
    if as_text:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data.hex()
        if text.isprintable():
            return text
    return data.hex()
