"""Declarations of protocol messages: a class per struct, a function call per field.

The annotations of a class are the Python types. The field calls declare the wire type, the
versions, since when the field is nullable, the default and the tag. The result is a slotted
dataclass. The compiler generates encoders and decoders from the declarations.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Final, TypeVar, dataclass_transform

from kohort.types import ZERO_UUID, value

T = TypeVar("T")

FIXED: Final = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
"""Wire types of constant width, with their `struct` format letters."""


@value
class Field:
    """The encoding of a field. `element` is for array items, `struct` for nested structs."""

    kind: str
    since: int = 0
    until: int | None = None
    nullable_since: int | None = None
    default: Any = None
    tag: int | None = None
    ignorable: bool = False
    compact: bool = True
    struct: type | None = None
    element: "Field | None" = None
    name: str = ""

    def exists_in(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)

    def is_nullable(self, version: int) -> bool:
        return self.nullable_since is not None and self.nullable_since <= version


@value
class Schema:
    """The declaration of a message or struct."""

    name: str
    fields: tuple[Field, ...]
    versions: range = range(0)
    flexible_since: int | None = None
    api_key: int | None = None

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since


# Field declarations. They return Any, so that an annotation may be a NewType.


def int8(**options: Any) -> Any:
    return _field("int8", 0, options)


def int16(**options: Any) -> Any:
    return _field("int16", 0, options)


def int32(**options: Any) -> Any:
    return _field("int32", 0, options)


def int64(**options: Any) -> Any:
    return _field("int64", 0, options)


def uint16(**options: Any) -> Any:
    return _field("uint16", 0, options)


def uint32(**options: Any) -> Any:
    return _field("uint32", 0, options)


def float64(**options: Any) -> Any:
    return _field("float64", 0.0, options)


def boolean(**options: Any) -> Any:
    return _field("bool", default=False, options=options)


def uuid(**options: Any) -> Any:
    return _field("uuid", ZERO_UUID, options)


def string(**options: Any) -> Any:
    return _field("string", "", options)


def blob(**options: Any) -> Any:
    return _field("bytes", b"", options)


def records(**options: Any) -> Any:
    """Record batches as bytes; they are not decoded with the message."""
    return _field("bytes", b"", options)


def struct(of: type, **options: Any) -> Any:
    return _field("struct", of(), {**options, "struct": of})


def array(of: type | str, **options: Any) -> Any:
    """An array of a declared struct, or of a primitive wire type."""
    element = Field(kind=of) if isinstance(of, str) else Field(kind="struct", struct=of)
    return _field("array", (), {**options, "element": element})


def _field(kind: str, default: object, options: dict[str, Any]) -> Any:
    field = Field(kind=kind, **{"default": default, **options})
    metadata = {"wire": field}
    if kind == "struct":
        # Dataclasses reject a mutable shared default; messages are never changed.
        return dataclasses.field(default_factory=lambda: field.default, metadata=metadata)
    return dataclasses.field(default=field.default, metadata=metadata)


# Class declarations. Like all values, messages are frozen only for the type checker.


@dataclass_transform(frozen_default=True, kw_only_default=True)
def part(cls: type[T]) -> type[T]:
    """Declare a struct inside messages. It has the versions of its message."""
    return _declare(cls, {})


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(
    *, versions: tuple[int, int], flexible_since: int | None = None, api_key: int | None = None
) -> Callable[[type[T]], type[T]]:
    """Declare a message: the content of a frame, a record key or a record value."""
    first, last = versions
    properties = {
        "versions": range(first, last + 1),
        "flexible_since": flexible_since,
        "api_key": api_key,
    }
    return lambda cls: _declare(cls, properties)


def schema_of(cls: type) -> Schema:
    schema: Schema = cls.__schema__  # type: ignore[attr-defined]  # set by _declare
    return schema


def _declare(cls: type[T], properties: dict[str, Any]) -> type[T]:
    declared = value(cls)
    fields = tuple(
        dataclasses.replace(f.metadata["wire"], name=f.name)
        for f in dataclasses.fields(declared)  # type: ignore[arg-type]  # a dataclass
    )
    declared.__schema__ = Schema(  # type: ignore[attr-defined]  # read by schema_of
        name=cls.__name__, fields=fields, **properties
    )
    return declared
