"""Encodes a request as a list of tokens, one for each number, length, text and tag.

The concatenated tokens are the same bytes as those of the real encoder. Mutations work on tokens,
so that they hit fields and lengths instead of random bits.
"""

import struct
from dataclasses import dataclass
from typing import Any

from kohort.wire.header import RequestHeader, request_header_version
from kohort.wire.schema import FIXED, Field, schema_of

NUMBER, LENGTH, COUNT, TEXT, BLOB, TAGS = "number", "length", "count", "text", "blob", "tags"


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    data: bytes
    letter: str = ""
    """The `struct` letter of a number, or of a length; empty for a varint."""


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def request_tokens(body: object, version: int, correlation_id: int) -> list[Token]:
    """Header and body, without the length of the frame."""
    cls = type(body)
    api_key = schema_of(cls).api_key
    assert api_key is not None
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="fuzz",
    )
    head = _Tokens(RequestHeader, request_header_version(cls, version))
    head.add_struct(RequestHeader, header)
    rest = _Tokens(cls, version)
    rest.add_struct(cls, body)
    return head.found + rest.found


class _Tokens:
    def __init__(self, cls: type, version: int) -> None:
        self._version = version
        self._is_flexible = schema_of(cls).is_flexible(version)
        self.found: list[Token] = []

    def add_struct(self, cls: type, value: Any) -> None:
        present = [each for each in schema_of(cls).fields if each.exists_in(self._version)]
        for field in present:
            if field.tag is None:
                self._add(field, getattr(value, field.name))
        if self._is_flexible:
            self._add_tags([each for each in present if each.tag is not None], value)

    def _add(self, field: Field, value: Any) -> None:
        match field.kind:
            case "array":
                self._add_array(field, value)
            case "struct":
                self._add_nested(field, value)
            case "string" | "bytes":
                self._add_sized(field, value)
            case kind:
                letter = FIXED[kind]
                self.found.append(Token(NUMBER, struct.pack(">" + letter, value), letter))

    def _add_length(self, kind: str, field: Field, length: int, letter: str) -> None:
        if self._is_flexible and field.compact:
            self.found.append(Token(kind, uvarint(length + 1)))
        else:
            self.found.append(Token(kind, struct.pack(">" + letter, length), letter))

    def _add_sized(self, field: Field, value: str | bytes | None) -> None:
        is_text = field.kind == "string"
        letter = "h" if is_text else "i"
        if value is None:
            self._add_length(LENGTH, field, -1, letter)
            return
        data = value.encode() if isinstance(value, str) else value
        self._add_length(LENGTH, field, len(data), letter)
        self.found.append(Token(TEXT if is_text else BLOB, data))

    def _add_array(self, field: Field, value: Any) -> None:
        assert field.element is not None
        self._add_length(COUNT, field, -1 if value is None else len(value), "i")
        for each in value or ():
            self._add(field.element, each)

    def _add_nested(self, field: Field, value: Any) -> None:
        assert field.struct is not None
        if field.is_nullable(self._version):
            null = b"\xff" if field.tag is None else b"\x00"
            self.found.append(Token(NUMBER, null if value is None else b"\x01", "b"))
        if value is not None:
            self.add_struct(field.struct, value)

    def _add_tags(self, tagged: list[Field], value: Any) -> None:
        """Only tagged fields that differ from their default are encoded."""
        given = [
            each
            for each in sorted(tagged, key=lambda one: one.tag or 0)
            if getattr(value, each.name) != each.default
        ]
        self.found.append(Token(TAGS, uvarint(len(given))))
        for field in given:
            outer, self.found = self.found, []
            self._add(field, getattr(value, field.name))
            inner, self.found = self.found, outer
            size = sum(len(token.data) for token in inner)
            self.found.append(Token(NUMBER, uvarint(field.tag or 0), "B"))
            self.found.append(Token(LENGTH, uvarint(size)))
            self.found += inner
