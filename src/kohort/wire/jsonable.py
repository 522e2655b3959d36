"""Decoded values as plain data for JSON, to be looked at by people and their tools.

A struct becomes a dict in the order of its fields, bytes become hexadecimal digits, a uuid its
canonical text. Nothing here reads such data back.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from kohort.wire.schema import Field

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def jsonable(value: object, *, version: int | None = None, as_text: bool = False) -> Json:
    """The value as plain data.

    A message holds defaults for the fields its version does not have; given the version, they are
    left out. With as_text, bytes that are printable UTF-8 are shown as that.
    """
    match value:
        case Enum():
            return value.name
        case None | str() | int() | float():
            return value
        case bytes():
            return _show_bytes(value, as_text=as_text)
        case tuple() | list():
            return [jsonable(item, version=version, as_text=as_text) for item in value]
        case _:
            return _show_struct(value, version, as_text=as_text)


def _show_struct(value: object, version: int | None, *, as_text: bool) -> Json:
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is no decoded value")
    shown: dict[str, Json] = {}
    for each in fields(value):
        wire: Field | None = each.metadata.get("wire")
        if wire is None or version is None or wire.lives_in(version):
            content = _name_uuids(wire, getattr(value, each.name))
            shown[each.name] = jsonable(content, version=version, as_text=as_text)
    return shown


def _name_uuids(wire: Field | None, content: object) -> object:
    """Only the declaration tells sixteen bytes that are a uuid from sixteen that are not."""
    match content:
        case bytes() if wire is not None and wire.kind == "uuid":
            return str(UUID(bytes=content))
        case Sequence() if wire is not None and wire.element is not None:
            return [_name_uuids(wire.element, item) for item in content]
        case _:
            return content


def _show_bytes(data: bytes, *, as_text: bool) -> str:
    if as_text:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data.hex()
        if text.isprintable():
            return text
    return data.hex()
